#include "commands/projection_arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "commands/arguments/command.h"
#include "commands/result.h"
#include "commands/schemas.h"
#include "peaks/peaks.h"
#include "support/si_number.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::nullopt_t say(const std::string& text) {
  complain(text);
  return std::nullopt;
}

}  // namespace

std::string scientific(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.3e", value);
  std::string out = text.data();
  const size_t e = out.find('e');
  std::string mantissa = out.substr(0, e);
  mantissa.erase(mantissa.find_last_not_of('0') + 1);
  if (mantissa.back() == '.') mantissa.pop_back();
  return mantissa + "e" + std::to_string(std::atoi(out.c_str() + e + 1));
}

std::string plain(double value) {
  std::array<char, 40> text{};
  if (std::fabs(value) >= 1e6) return scientific(value);
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string duration_text(double seconds) {
  struct TimeUnit {
    double seconds;
    const char* name;
  };
  constexpr TimeUnit kUnits[] = {{86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}};
  for (const TimeUnit& unit : kUnits)
    if (seconds >= 2 * unit.seconds || (unit.seconds <= 1 && seconds >= unit.seconds))
      return plain(seconds / unit.seconds) + " " + unit.name;
  return plain(seconds * 1e6) + " us";
}

std::optional<double> parse_duration(std::string_view text) {
  struct Suffix {
    std::string_view suffix;
    double seconds;
  };
  constexpr Suffix kSuffixes[] = {{"min", 60}, {"ms", 1e-3}, {"d", 86400}, {"h", 3600}, {"s", 1}};
  for (const auto& [suffix, seconds] : kSuffixes) {
    if (!text.ends_with(suffix)) continue;
    const auto value = parse_si(text.substr(0, text.size() - suffix.size()));
    return value ? std::optional(*value * seconds) : std::nullopt;
  }
  return parse_si(text);
}

void add_number(manual::CommandLine& app, const char* name, std::optional<double>& value,
                const std::string& help, Least least) {
  app.add_option_function<std::string>(
         name,
         [name, &value, least](const std::string& text) {
           value = parse_si(text);
           if (!value)
             throw CLI::ValidationError(std::string(name) + " " + printable(text) +
                                        ": must be a number such as 1.2M or 3e8");
           if (*value == 0 && least == Least::kAboveZero)
             throw CLI::ValidationError(std::string(name) + " " + printable(text) +
                                        ": must be above 0");
         },
         help)
      ->type_name("NUMBER");
}

bool without_effect(const CLI::App& app, std::initializer_list<const char*> options,
                    const std::string& why) {
  for (const char* option : options)
    if (app.count(option) > 0) {
      complain(std::string(option) + " has no effect here: " + why);
      return false;
    }
  return true;
}

bool possible(const std::string& name, double value) {
  if (std::isfinite(value) && value > 0) return true;
  complain(name + " would be " + (value > 0 ? "beyond any number" : "0") +
           ": a number that was given is too large or too small");
  return false;
}

void PeakArguments::add_to(manual::CommandLine& app) {
  std::vector<std::string> names;
  for (const Gpu* known : search_gpus("")) names.emplace_back(known->name);
  app.add_option("--gpu", gpu, "A GPU of `flopreduce peaks`, or a part of its name")
      ->type_name("GPU")
      ->check(manual::such_as(names));
  app.add_option("--precision", precisions, "Whose peak, such as fp32 or tensor_bf16 (fp32)")
      ->type_name("PRECISION")
      ->check(manual::such_as({kPrecisionNames.begin(), kPrecisionNames.end()}))
      ->delimiter(',');
  add_number(app, "--peak", given, "Peak FLOP/s of one device, instead of --gpu");
}

std::optional<std::vector<PeakArguments::Choice>> PeakArguments::choose(int fma) const {
  if (given && !gpu.empty()) return say("give --gpu or --peak, not both");
  if (given && !precisions.empty())
    return say("--precision has no effect here: --peak is the peak itself; give --gpu");
  const std::string convention = fma == 1 ? ", a multiply-add as one" : "";
  if (given)
    return std::vector<Choice>{{"given", in_convention(*given, fma), "--peak" + convention}};
  std::string error;
  const Gpu* row = choose_gpu(gpu, error);
  if (row == nullptr) return say(error);
  std::vector<Choice> out;
  for (const auto& name : precisions.empty() ? std::vector<std::string>{"fp32"} : precisions) {
    const auto peak = peak_of(*row, whole_precision_name(name));
    if (!peak)
      return say(std::string(row->name) + " has no peak for '" + printable(name) +
                 "'; see flopreduce peaks '" + std::string(row->name) + "'");
    out.push_back({name, in_convention(peak->per_second, fma),
                   std::string(row->name) + ", " + peak->source + convention});
  }
  return out;
}

bool ProjectionResult::add(const char* key, const char* name, double value, std::string shown,
                           std::string from) {
  rows_.push_back({key, name, value, std::move(shown), std::move(from)});
  return possible(name, value);
}

// As lines: what a figure comes from is a sentence, and reads from the left.
std::vector<Line> ProjectionResult::lines() const {
  size_t name_width = 0;
  size_t value_width = 0;
  for (const Row& row : rows_) {
    name_width = std::max(name_width, row.name.size());
    value_width = std::max(value_width, row.shown.size());
  }
  std::vector<Line> lines;
  for (const Row& row : rows_)
    lines.push_back(Line("  " + row.name + std::string(name_width + 2 - row.name.size(), ' ') +
                         std::string(value_width - row.shown.size(), ' ') + row.shown)
                        .then("  " + row.from, Tone::kDim));
  return lines;
}

// With values for people or for programs.
Table ProjectionResult::table(bool people) const {
  Table table{"projection", {{"figure", "figure"}, {"value", "value"}, {"from", "from"}}};
  for (const Row& row : rows_)
    table.rows.push_back(
        {people ? row.name : row.key, people ? Cell(row.shown) : Cell(row.value), row.from});
  return table;
}

void ProjectionResult::fields(Fields& f) const {
  struct Projected {
    const char* key;
    const char* about;
  };
  static constexpr std::array kFigures = {
      Projected{"flop_per_step", "given, or executed"},
      Projected{"gpu_step_s", "of traces: sum of kernels of a step, mean of the devices"},
      Projected{"wall_step_s", "of traces that say how long they recorded"},
      Projected{"devices", "given, or those of the traces that had launches"},
      Projected{"operations_flop", "method 1: by operations"},
      Projected{"peak_flop_per_s",
                "of one device: of a GPU, given, or of the precisions that ran in the traces"},
      Projected{"utilization", "given, measured in the traces, or assumed"},
      Projected{"time_flop", "method 2: time x devices x peak x utilization"},
      Projected{"factor", "larger / smaller of the two methods"},
      Projected{"implied_utilization", "operations_flop / (time x devices x peak)"},
      Projected{"projected_s",
                "from the traces' time of a step, or operations_flop / (devices x peak x "
                "utilization)"}};
  const auto row_of = [&](const char* key) {
    const auto found = std::ranges::find(rows_, key, &Row::key);
    return found == rows_.end() ? nullptr : &*found;
  };
  f.version();
  for (const Projected& figure : kFigures) {
    const Row* row = row_of(figure.key);
    f(figure.key, row != nullptr ? std::optional(row->value) : std::nullopt, figure.about);
  }
  f.object("from", "where each comes from", [&](Fields& from) {
    for (const Projected& figure : kFigures) {
      const Row* row = row_of(figure.key);
      from(figure.key, row != nullptr ? std::optional(row->from) : std::nullopt);
    }
  });
}

Json training_schema() {
  return Fields::schema_of(
      "flopreduce project train",
      "Projected training; null where a figure is not worked out from what was given. Times are "
      "seconds; one fused multiply-add counts 2.",
      [](Fields& f) { ProjectionResult().fields(f); });
}

int ProjectionResult::write(const OutputArguments& output, const char* title) const {
  Result result;
  result.sections = {{title, {}, std::nullopt, {}}};
  if (output.format == "markdown")
    result.sections[0].table = table(true);
  else
    result.sections[0].above = lines();
  result.json = [this] { return Fields::json_of([this](Fields& f) { fields(f); }); };
  result.tables = {table(false)};
  return write_result(result, output);
}

bool valid_utilization(const std::optional<double>& u) {
  if (!u || (*u > 0 && *u <= 1)) return true;
  complain("--utilization must be above 0 and at most 1: a share, not percent");
  return false;
}

std::optional<double> share_of(const Work& work, double parts, const char* what) {
  if (!work.flop_complete()) {
    complain(std::string("the traces' ") + what + " has " + std::to_string(work.unmeasured) +
             " unmeasured launches: no projection from a part");
    return std::nullopt;
  }
  return static_cast<double>(work.flop) / parts;
}

}  // namespace flopinj::reduce
