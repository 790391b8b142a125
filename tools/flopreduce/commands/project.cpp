// flopreduce project train | infer: what a whole training run or an inference takes, worked out
// from numbers or from what a recording measured.
//
// The two methods: J. Sevilla and others, "Estimating Training Compute of Deep Learning Models"
// (2022). What is assumed of utilization where nothing is measured, 0.4, and 0.3 for large language
// models, is theirs (method 2).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "commands/forms.h"
#include "peaks/peaks.h"
#include "support/si_number.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

using Number = std::optional<double>;

// "8.1e21", four significant digits.
std::string scientific(double value) {
  std::string mantissa = printed("%.3e", value);
  const size_t e = mantissa.find('e');
  const int exponent = std::atoi(mantissa.c_str() + e + 1);
  mantissa.erase(std::max<size_t>(1, mantissa.find_last_not_of("0.", e - 1) + 1));
  return mantissa + "e" + std::to_string(exponent);
}

// "0.3", six significant digits; from a million on scientific.
std::string plain(double value) {
  return std::fabs(value) >= 1e6 ? scientific(value) : printed("%.6g", value);
}

// "3.5 days", "1.77583 ms".
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

std::string shown(double value, std::string_view unit) {
  if (unit.empty()) return plain(value);
  return unit == "s" ? duration_text(value) : scientific(value) + " " + std::string(unit);
}

// Numbers that are too large or too small were given where a figure is no number above 0.
double possible(const std::string& name, double value) {
  if (std::isfinite(value) && value > 0) return value;
  throw Failure(name + " would be " + (value > 0 ? "beyond any number" : "0") +
                ": a number that was given is too large or too small");
}

void check_utilization(const Number& u) {
  if (u && (*u <= 0 || *u > 1))
    throw Failure("--utilization must be above 0 and at most 1: a share, not percent");
}

[[noreturn]] void refuse(const std::string& option, const std::string& goes_with) {
  throw Failure(option + " has no effect here: it goes with " + goes_with);
}

// Whose peak: of a GPU in the table, or given.
struct PeakArguments {
  std::string gpu;
  std::vector<std::string> precisions;
  Number given;

  struct Choice {
    std::string precision;
    double flop_per_s = 0;
    std::string source;
  };

  void add_to(manual::CommandLine& app) {
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

  // In the convention of `fma`; none where there is neither.
  std::vector<Choice> choose(int fma) const {
    if (given && !gpu.empty()) throw Failure("give --gpu or --peak, not both");
    if (given && *given >= 1)  // a prefix was forgotten
      if (const std::string why = no_peak(printed("%.10g", *given), *given, false); !why.empty())
        throw Failure("--peak: " + why);
    if (gpu.empty() && !precisions.empty()) refuse("--precision", "--gpu");
    const std::string convention = fma == 1 ? ", a multiply-add as one" : "";
    if (given) return {{"given", in_convention(*given, fma), "--peak" + convention}};
    if (gpu.empty()) return {};
    std::string error;
    const Gpu* row = choose_gpu(gpu, error);
    if (row == nullptr) throw Failure(error);
    const std::string name(row->name);
    std::vector<Choice> out;
    for (const auto& precision :
         precisions.empty() ? std::vector<std::string>{"fp32"} : precisions) {
      const auto peak = peak_of(*row, whole_precision_name(precision));
      if (!peak)
        throw Failure(name + " has no peak for '" + printable(precision) +
                      "'; see flopreduce peaks '" + name + "'");
      out.push_back({precision, in_convention(peak->per_second, fma),
                     name + ", " + peak->source + convention});
    }
    return out;
  }
};

struct NumberOption {
  const char* name;
  const char* help;
  const char* goes_with;
  Number preset = std::nullopt;
  bool may_be_zero = false;
};
constexpr const char *kWithExamples = "--forward-flop and --examples",
                     *kWithPeak = "--gpu or --peak";
constexpr NumberOption kNumbers[] = {
    {"--forward-flop", "Forward FLOP of one example; of one time step, with --recurrent-steps",
     "--examples, and without --flop-per-step and traces"},
    {"--backward-ratio", "Backward / forward FLOP (2)", kWithExamples, 2, true},
    {"--recurrent-steps", "Time steps of one example, on average (1)", kWithExamples, 1},
    {"--non-recurrent-flop", "Forward FLOP of one example outside its time steps (0)",
     kWithExamples, 0, true},
    {"--examples", "Examples of one epoch", "--forward-flop"},
    {"--epochs", "Epochs (1)", kWithExamples, 1},
    {"--flop-per-step", "FLOP of one step, forward and backward", "--steps, and without traces"},
    {"--steps", "Steps of the whole training", "--flop-per-step or traces"},
    {"--trace-steps", "Steps that the traces hold", "traces"},
    {"--devices", "Devices (1, or as many as the traces have)", kWithPeak, 1},
    {"--utilization", "Share of peak that is reached (as the traces measured it, else 0.4)",
     kWithPeak}};

// What a projection of training may say, in order.
struct Projected {
  const char* key;
  const char* name;
  const char* unit;
};
constexpr Projected kFigures[] = {{"flop_per_step", "FLOP of a step", "FLOP"},
                                  {"operations_flop", "by operations", "FLOP"},
                                  {"gpu_step_s", "GPU time of a step", "s"},
                                  {"wall_step_s", "wall time of a step", "s"},
                                  {"peak_flop_per_s", "peak", "FLOP/s"},
                                  {"utilization", "utilization", ""},
                                  {"devices", "devices", ""},
                                  {"time_flop", "by device time", "FLOP"},
                                  {"factor", "factor between", ""},
                                  {"implied_utilization", "implied utilization", ""},
                                  {"projected_s", "projected time", "s"}};

// A way to a figure: terms that are added, multiplied or divided from the left, open where all are
// known. Of several ways to a figure the first open one counts. What is no figure is for others.
struct Way {
  std::string_view key, formula;
  const char* from = "";                      // in words
  std::string_view needs = "", without = "";  // what has to be known too, and what must not be
};
constexpr Way kWays[] = {
    {"flop_per_step", "traces.flop", "executed, of {traces}"},
    {"flop_per_step", "--flop-per-step", "given"},
    {"forward", "--forward-flop * --recurrent-steps + --non-recurrent-flop", "", "--examples",
     "flop_per_step"},
    {"passes", "1 + --backward-ratio", "", "forward"},
    // Method 1.
    {"operations_flop", "flop_per_step * --steps", "FLOP of a step x {--steps} steps"},
    {"operations_flop", "forward * passes * --examples * --epochs",
     "forward {forward} x {passes} (with backward) x {--examples} examples x {--epochs} epochs"},
    {"gpu_step_s", "traces.gpu_s", "sum of kernels, of {traces}{mean}"},
    {"wall_step_s", "traces.wall_s", "the recording's, of {traces}{mean}"},
    {"peak_flop_per_s", "typed.peak", "{typed.peak}"},
    {"peak_flop_per_s", "traces.peak", "of the precisions that ran, on {traces.peak}"},
    {"utilization", "--utilization", "given", "peak_flop_per_s"},
    {"utilization", "traces.utilization", "measured, over {over} time", "peak_flop_per_s"},
    {"utilization", "0.4", "assumed; 0.30 is usual for large language models", "peak_flop_per_s"},
    {"devices", "traces.used", "{traces.used}"},
    {"rate", "devices * peak_flop_per_s * utilization"},
    {"most_flop", "--time * devices * peak_flop_per_s"},
    // Method 2.
    {"time_flop", "most_flop * utilization", "{--time} x {devices} devices x peak x utilization"},
    {"factor", "operations_flop / time_flop", "larger / smaller of the two methods"},
    {"implied_utilization", "operations_flop / most_flop",
     "by operations / (time x devices x peak)"},
    // From the time of a step where that was measured and nothing else was typed.
    {"projected_s", "wall_step_s * --steps * traces.devices / devices",
     "wall time of a step x steps{shared}", "", "typed"},
    {"projected_s", "gpu_step_s * --steps * traces.devices / devices",
     "GPU time of a step x steps{shared}", "", "typed"},
    {"projected_s", "operations_flop / rate",
     "by operations / ({devices} devices x peak x utilization)", "", "--time"}};

// What is known by name: options, "traces." what was measured, and what was worked out. It notes
// what is asked for: an option that never is has no effect.
class Known {
 public:
  void set(std::string_view name, double value) { values_[name] = value; }
  void say(std::string_view name, std::string text) { texts_[name] = std::move(text); }
  bool has(std::string_view name) const { return is_set(name) || preset(name); }
  bool is_set(std::string_view name) const { return values_.contains(name); }
  double operator[](std::string_view name) const {
    asked_.insert(name);
    const auto found = values_.find(name);
    if (found == values_.end() && name == "devices") return (*this)["--devices"];
    return found != values_.end() ? found->second : *preset(name);
  }

  Number worked_out(const Way& way) const {
    const auto words = parts_of(way.formula, ' ');
    const auto is_known = [&](auto word) { return has(word) || kSigns.find(word) != kSigns.npos; };
    if (!std::ranges::all_of(words, is_known) || (!way.needs.empty() && !has(way.needs)) ||
        values_.contains(way.without))
      return std::nullopt;
    double value = (*this)[words[0]];
    for (size_t i = 1; i < words.size(); i += 2) {
      const double term = (*this)[words[i + 1]];
      value = words[i] == "+" ? value + term : words[i] == "*" ? value * term : value / term;
    }
    return value;
  }
  // "{--steps} steps", with the text or the number of each name.
  std::string filled(std::string_view form) const {
    std::string out;
    for (size_t open = 0; (open = form.find('{')) != form.npos;) {
      const size_t close = form.find('}', open);
      const std::string_view name = form.substr(open + 1, close - open - 1);
      const auto text = texts_.find(name);
      out.append(form.substr(0, open));
      out += text != texts_.end() ? text->second : plain((*this)[name]);
      form.remove_prefix(close + 1);
    }
    return out.append(form);
  }
  void refuse_what_has_no_effect() const {
    for (const auto& [name, value] : values_) {
      if (!name.starts_with("--") || asked_.contains(name)) continue;
      const auto* option = std::ranges::find(kNumbers, name, &NumberOption::name);
      refuse(std::string(name), option == std::end(kNumbers) ? kWithPeak : option->goes_with);
    }
  }

 private:
  static constexpr std::string_view kSigns = "+*/";

  Number preset(std::string_view name) const {
    if (name == "devices") name = "--devices";
    const auto* option = std::ranges::find(kNumbers, name, &NumberOption::name);
    return option == std::end(kNumbers) ? parse_si(name) : option->preset;
  }

  std::map<std::string_view, double> values_;
  std::map<std::string_view, std::string> texts_;
  mutable std::set<std::string_view> asked_;
};

// What a recording of some steps says of one.
void measure_steps(const Report& report, double skipped, Known& k) {
  const double steps = k["--trace-steps"] - skipped;
  if (steps <= 0) throw Failure("--skip-steps leaves none of so many --trace-steps");
  const Work& total = report.total;
  if (!total.flop_complete())
    throw Failure("the traces' total has " + std::to_string(total.unmeasured) +
                      " unmeasured launches: no projection from a part",
                  kExitPartial);
  const auto used = std::ranges::count_if(
      report.devices, [](const auto& device) { return device.ledger.launches > 0; });
  const auto devices = static_cast<double>(std::max<ptrdiff_t>(1, used));
  const auto on_one = [&](double ns) { return ns / 1e9 / devices / steps; };
  k.set("traces.flop", static_cast<double>(total.flop) / steps);
  k.say("traces", plain(steps) + " steps in the traces" +
                      (skipped > 0 ? ", after the first " + plain(skipped) : "") +
                      (report.simulated.value_or(false) ? " (simulated)" : ""));
  k.say("mean", devices > 1 ? ", mean of " + plain(devices) + " devices" : "");
  if (total.launches > 0 && total.time.unknown == 0)
    k.set("traces.gpu_s", on_one(static_cast<double>(total.time.ns)));
  if (const auto wall = report.utilization.wall_ns.number()) k.set("traces.wall_s", on_one(*wall));
  for (const auto& method : report.utilization.methods)
    if (method.name == "executed") {
      const Figure& over = method.wall.known() ? method.wall : method.gpu_time;
      if (over.known()) k.set("traces.utilization", *over.number());
      k.say("over", method.wall.known() ? "wall" : "GPU");
    }
  if (total.roof.no_peak == 0 && total.roof.compute_ns > 0 && total.flop > 0 &&
      (k.has("traces.utilization") || k.has("--utilization"))) {
    // FLOP / the least time that the peaks allow for the mix.
    k.set("traces.peak", static_cast<double>(total.flop) / total.roof.compute_ns * 1e9);
    k.say("traces.peak", device_names(report));
  }
  const bool typed = k.is_set("--devices");
  k.set("traces.devices", devices);
  k.set("traces.used", typed ? k["--devices"] : devices);
  k.say("traces.used", typed ? "given" : "in the traces");
  k.say("shared", k["traces.used"] == devices
                      ? ""
                      : k.filled(" x {traces.devices} / {--devices} devices, if all share alike"));
}

struct TrainArguments {
  InputArguments input;
  OutputArguments output;
  PeakArguments peak;
  std::string time;
  std::map<std::string_view, Number> numbers;
};

Known known_of(TrainArguments& a) {
  Known k;
  for (const auto& [name, value] : a.numbers)
    if (value) k.set(name, *value);
  check_utilization(a.numbers["--utilization"]);
  if (!a.time.empty()) {
    const Number seconds = parse_seconds(a.time);
    if (!seconds || *seconds <= 0)
      throw Failure("--time " + printable(cut(a.time, 60)) +
                    ": must be a duration such as 3.5d or 84h");
    k.set("--time", *seconds);
    k.say("--time", duration_text(*seconds));
  }
  const auto peaks = a.peak.choose(a.input.reduce.fma);
  if (peaks.size() > 1) throw Failure("--precision: one, for training");
  for (const auto& peak : peaks) {
    k.set("typed.peak", peak.flop_per_s);
    k.say("typed.peak", peak.precision + ": " + peak.source);
  }
  if (const Number& flop = a.numbers["--forward-flop"]) {
    const Number steps = a.numbers["--recurrent-steps"], beside = a.numbers["--non-recurrent-flop"];
    std::string forward = scientific(*flop);
    if (steps.value_or(1) != 1) forward += " x " + plain(*steps) + " steps";
    if (beside.value_or(0) > 0) forward = "(" + forward + " + " + scientific(*beside) + ")";
    k.say("forward", forward);
  }
  if (!peaks.empty() || !a.time.empty() || k.has("--utilization")) k.set("typed", 1);
  return k;
}

// The rows of a table of texts. What a figure comes from is a sentence, and reads from the left.
std::vector<Line> lines_of(const Table& table) {
  const auto text = [](const TableRow& row, size_t c) {
    return std::get<std::string>(row[c].value);
  };
  size_t name_width = 0, value_width = 0;
  for (const TableRow& row : table.rows) {
    name_width = std::max(name_width, text(row, 0).size());
    value_width = std::max(value_width, text(row, 1).size());
  }
  std::vector<Line> lines;
  for (const TableRow& row : table.rows) {
    std::string name = text(row, 0), value = text(row, 1);
    name.resize(name_width + 2, ' ');
    value.insert(0, value_width - value.size(), ' ');
    lines.push_back(Line("  " + name + value).then("  " + text(row, 2), Tone::kDim));
  }
  return lines;
}

int run_train(TrainArguments& a, const CLI::App& app) {
  a.input.finish();
  a.output.finish(a.input.files());
  Known k = known_of(a);
  const bool traces = !a.input.traces.empty();
  for (const char* option : {"--fma", "--phase", "--rules", "--names", "--skip-steps"})
    if (!traces && app.count(option) > 0) refuse(option, "traces");
  if (traces && !k.has("--trace-steps"))
    throw Failure("traces need --trace-steps: how many steps they hold");
  if (traces) {
    const auto skipped = static_cast<double>(a.input.reduce.utilization.skip_steps);
    const Reduced reduced = reduce_traces(a.input);
    if (!reduced.report || reduced.exit_code != kExitFine) return reduced.exit_code;
    measure_steps(*reduced.report, skipped, k);
  }
  Table people{"projection",
               {{"figure", "figure"}, {"value", "value", Kind::kRatio}, {"from", "from"}}};
  Table programs = people;
  for (const Way& way : kWays) {
    if (k.is_set(way.key)) continue;
    Number value = k.worked_out(way);
    if (!value) continue;
    if (way.key == "factor") value = std::max(*value, k["time_flop"] / k["operations_flop"]);
    if (way.key == "implied_utilization" && *value > 1)
      throw Failure("the operations need " + plain(*value) +
                    " times what the devices can do in that time: a number is wrong");
    k.set(way.key, *value);
    const auto* figure = std::ranges::find(kFigures, way.key, &Projected::key);
    if (figure == std::end(kFigures)) continue;
    possible(figure->name, *value);
    const std::string from = k.filled(way.from);
    people.rows.push_back({figure->name, shown(*value, figure->unit), from});
    programs.rows.push_back({figure->key, Figure::exact(*value), from});
  }
  if (!k.has("operations_flop") && !k.has("time_flop"))
    throw Failure(
        "give --forward-flop and --examples, --flop-per-step and --steps, traces with "
        "--trace-steps and --steps, or --time and --gpu or --peak (see flopreduce project train "
        "--help)");
  k.refuse_what_has_no_effect();
  Section section{"Training compute", {}, people, {}};
  if (a.output.format != "markdown") {
    section.above = lines_of(people);
    section.table.reset();
  }
  return write_result({{std::move(section)}, {std::move(programs)}}, a.output);
}

Action define_train(manual::CommandLine& app) {
  app.notes =
      "Numbers may end in k, M, G, T, P or E, or have an exponent. From traces come the FLOP, GPU "
      "time and wall time of a step, the number of devices and the utilization; --devices, "
      "--utilization, --gpu and --peak override these.";
  app.examples = {{"flopreduce project train --forward-flop 3.1e8 --examples 7.5G \\\n"
                   "    --time 3.5d --devices 8 --gpu 'P100 SXM2' --utilization 0.3",
                   "both methods, and how far they are apart"},
                  {"flopreduce project train trace.pb --trace-steps 20 --steps 300k --devices 64",
                   "from 20 measured steps to a whole training"}};
  const auto a = std::make_shared<TrainArguments>();
  app.add_option("TRACE", a->input.traces,
                 "Traces of as many training steps as --trace-steps says");
  a->input.add_to(app, false);
  a->input.add_skip_steps_to(app);
  for (const NumberOption& o : kNumbers)
    add_number(app, o.name, a->numbers[o.name], o.help, o.may_be_zero);
  app.add_option("--time", a->time, "How long the training took: 3.5d, 84h, 30min, 12s")
      ->type_name("DURATION");
  a->peak.add_to(app);
  a->output.add_to(app, result_forms());
  return [a, &app] { return run_train(*a, app); };
}

struct InferArguments {
  OutputArguments output;
  PeakArguments peak;
  Number forward, utilization;
};

int run_infer(InferArguments& a) {
  a.output.finish({});
  check_utilization(a.utilization);
  if (!a.forward) throw Failure("--forward-flop is missing: FLOP of one example");
  const auto peaks = a.peak.choose(2);
  if (peaks.empty()) throw Failure("--gpu or --peak is missing");
  const double flop = *a.forward, u = a.utilization.value_or(1);
  Table people{"inference",
               {{"precision", "precision"},
                {"peak_flop_per_s", "peak", Kind::kRate},
                {"time_s", "time of one"},
                {"examples_per_s", "per second"}}};
  Table programs = people;
  for (Column& column : programs.columns)
    if (column.kind == Kind::kText && &column != programs.columns.data())
      column.kind = Kind::kRatio;
  programs.columns.push_back({"source", "source"});
  std::vector<Line> sources;
  for (const auto& c : peaks) {
    const double seconds = possible("the time of one example", flop / (c.flop_per_s * u));
    const double per_second = possible("examples per second", 1 / seconds);
    const Figure peak = Figure::exact(c.flop_per_s);
    people.rows.push_back({c.precision, peak, duration_text(seconds), plain(per_second)});
    programs.rows.push_back(
        {c.precision, peak, Figure::exact(seconds), Figure::exact(per_second), c.source});
    sources.emplace_back("  " + c.precision + ": " + c.source, Tone::kDim);
  }
  const std::string title =
      "Inference of " + scientific(flop) + " FLOP at " + plain(100 * u) + " % of peak";
  return write_result({{{title, {}, std::move(people), std::move(sources)}}, {std::move(programs)}},
                      a.output);
}

Action define_infer(manual::CommandLine& app) {
  app.examples = {{"flopreduce project infer --forward-flop 15503M --gpu 'K80 board'",
                   "time of one image of VGG-16 on a K80"}};
  const auto a = std::make_shared<InferArguments>();
  add_number(app, "--forward-flop", a->forward, "FLOP of one example");
  add_number(app, "--utilization", a->utilization, "Share of peak that is reached (1)");
  a->peak.add_to(app);
  a->output.add_to(app, result_forms());
  return [a] { return run_infer(*a); };
}

constexpr Command kTrain = {
    "train", "training compute, by operations, by device time, or both",
    "Training compute by operations (method 1), by device time (method 2), or by both.",
    define_train};
constexpr Command kInfer = {"infer", "time and throughput of one forward pass",
                            "Time and throughput of one forward pass at a share of peak.",
                            define_infer};
constexpr const Command* kWords[] = {&kTrain, &kInfer};

}  // namespace

extern const Command kProject = {reducer_command("project"),
                                 "What a whole training run or an inference takes.", nullptr,
                                 kWords};

}  // namespace flopinj::reduce
