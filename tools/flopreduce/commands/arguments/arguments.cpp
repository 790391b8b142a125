#include "commands/arguments/arguments.h"

#include <glob.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <utility>

#include "passes/summary/condense.h"
#include "reader/input.h"
#include "sections/notices.h"
#include "support/program_name.h"
#include "support/si_number.h"
#include "support/text.h"
#include "terminal_colors.h"

namespace flopinj::reduce {

void complain(const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", std::string(program_name).c_str(), text.c_str());
}

namespace {

// The traces and summaries in a folder, by name; not those in folders below it. Where there are
// none the reader says so.
std::vector<std::string> traces_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (is_trace_name(at->path().string())) found.push_back(at->path().lexically_normal());
  if (found.empty()) return {folder};
  std::sort(found.begin(), found.end());
  return found;
}

// The files that fit a pattern in quotes, which no shell has expanded; else the name itself.
std::vector<std::string> expanded(const std::string& name) {
  std::error_code ignored;
  if (name.find_first_of("*?[") == name.npos || std::filesystem::exists(name, ignored))
    return {name};
  glob_t found{};
  std::vector<std::string> names;
  if (::glob(name.c_str(), 0, nullptr, &found) == 0)
    names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return names.empty() ? std::vector<std::string>{name} : names;
}

// A file's bytes; of one that is larger than `most`, a byte more than that.
std::string text_of(const std::string& name, size_t most) {
  errno = 0;
  std::ifstream file(name, std::ios::binary);
  std::string text;
  constexpr size_t kAtOnce = 1U << 20;
  while (file && text.size() <= most) {
    const size_t before = text.size();
    text.resize(before + std::min(kAtOnce, most + 1 - before));
    file.read(text.data() + before, static_cast<std::streamsize>(text.size() - before));
    text.resize(before + static_cast<size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad() || (!file && !file.eof()))
    throw Failure(printable(name) + ": cannot be read: " + std::strerror(errno != 0 ? errno : EIO),
                  errno == EACCES ? kExitPermission : kExitUsage);
  return text;
}

}  // namespace

std::vector<std::string> lines_of(const std::string& list, const char* option) {
  std::ifstream file;
  if (list != "-") {
    file.open(list);
    if (!file)
      throw Failure(std::string(option) + " " + printable(list) + ": " + std::strerror(errno) +
                    "; it takes a file with a name a line, or - for standard input");
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(list == "-" ? std::cin : file, line);) {
    if (line.find('\0') != line.npos)
      throw Failure(std::string(option) + " " + printable(list) +
                    ": it is no list of names, one a line; a trace is given without " + option);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

CLI::Option& several(CLI::Option* option, const char* type) {
  return *option->type_name(type)->take_all()->allow_extra_args(false);
}

void add_number(manual::CommandLine& app, const char* name, std::optional<double>& value,
                const char* help, Written written) {
  app.add_option_function<std::string>(
         name,
         [name, &value, written](const std::string& text) {
           const bool share = written == Written::kShare;
           value = share ? parse_share(text) : parse_count(text);
           const std::string given = std::string(name) + " " + printable(cut(text, 60));
           if (!value && text.starts_with('-') && parse_count(std::string_view(text).substr(1)))
             throw CLI::ValidationError(given + ": must be above 0");
           if (!value && share)
             throw CLI::ValidationError(given + ": must be a share such as 0.4 or 40%");
           if (!value)
             throw CLI::ValidationError(given + ": must be a number such as 1.2M, 7B or 3e8");
           if (*value == 0 && written != Written::kCountOrZero)
             throw CLI::ValidationError(given + ": must be above 0");
         },
         help)
      ->type_name("NUMBER");
}

void TimeRange::parse() {
  if (text.empty()) return;
  const size_t dots = text.find("..");
  bool right = dots != text.npos && text.size() > 2;
  const auto read = [&](const std::string& part, uint64_t& ns) {
    if (part.empty() || !right) return;
    constexpr double kMost = 1e9;
    const auto seconds = parse_seconds(part);
    right = seconds && *seconds <= kMost;
    if (right) ns = static_cast<uint64_t>(*seconds * 1e9 + 0.5);
  };
  if (right) {
    read(text.substr(0, dots), begin_ns);
    read(text.substr(dots + 2), end_ns);
  }
  if (!right || begin_ns >= end_ns)
    throw Failure("--time-range " + printable(cut(text, 60)) +
                  ": must be two times, such as 1.5s..2s, 250ms.. or ..3s");
}

void InputArguments::add_traces_to(manual::CommandLine& app) {
  asks_for_traces = true;
  app.add_option("TRACE", traces,
                 "Traces and summaries, compressed or not; a folder: all in it; '-': standard "
                 "input; none: those of the newest run in this folder");
  several(
      app.add_option("--files-from", lists,
                     "More traces: their names from FILE, one a line; '-': from standard input"),
      "FILE");
}

void InputArguments::add_to(manual::CommandLine& app, bool positional) {
  if (positional) add_traces_to(app);
  app.add_option("--fma", reduce.fma, "What one fused multiply-add counts, 1 or 2")
      ->check(CLI::Range(1, 2))
      ->capture_default_str();
  rules.add_to(app, reduce.rules);
  several(app.add_option("--names", names,
                         "Names of scopes from FILE, which flopinj.jax writes: they take the place "
                         "of XLA's ranges"),
          "FILE");
  several(app.add_option("--formulas", formulas,
                         "Formulas of your own from FILE: lines such as 'operator my_ext::mlp = "
                         "2*size[0]*size[1][-1]'"),
          "FILE");
  app.add_option("--counters", reduce.counters,
                 "Counters of the launches of a recording of torch.profiler or Nsight Systems: of "
                 "the same program, what ncu --csv --page raw has printed")
      ->type_name("CSV");
  app.add_option("-j,--jobs", reduce.jobs,
                 "Threads that read; without it one per core, at most " + std::to_string(kMostJobs))
      ->check(CLI::Range(1U, 256U));
  app.add_flag("-q,--quiet", quiet, "No progress bar");
}

void InputArguments::add_peaks_to(manual::CommandLine& app) {
  several(app.add_option_function<std::vector<std::string>>(
              "--peak",
              [this](const std::vector<std::string>& texts) {
                for (const auto& text : texts) {
                  auto parsed = parse_peak(text);
                  if (!parsed.error.empty()) throw CLI::ValidationError(parsed.error);
                  reduce.utilization.peaks.push_back(std::move(parsed.value));
                }
              },
              "A peak for utilization, such as tensor_bf16=989T or memory=4.8T (FLOP/s, B/s). "
              "DEVICE is a device's name, or a part of it that fits no other product"),
          "[DEVICE:]PRECISION=VALUE");
}

void InputArguments::add_utilization_to(manual::CommandLine& app) {
  UtilizationOptions& to = reduce.utilization;
  add_peaks_to(app);
  add_number(app, "--formula-flop", to.formula_flop,
             "FLOP of all work in the traces, but for skipped steps, by formula: for MFU");
  add_number(app, "--forward-flop", to.forward_flop,
             "FLOP of the forward passes in the traces, by formula: for the method theory");
  add_number(app, "--batch-size", to.batch_size, "Examples in one batch; 1: for the method one");
  add_skip_steps_to(app);
  add_number(app, "--tokens-per-step", to.tokens_per_step,
             "Tokens that all processes in the traces train on in one step, for tokens/s");
  add_number(app, "--parameters", to.parameters,
             "Parameters of the model: with --tokens-per-step, MFU is 6 x parameters x tokens "
             "(6ND) of all steps");
}

void InputArguments::add_skip_steps_to(manual::CommandLine& app) {
  app.add_option("--skip-steps", reduce.utilization.skip_steps,
                 "Leave out the first N training steps of each process, such as warm-up and "
                 "autotuning, and whatever ran before them, of all figures (0)")
      ->type_name("N");
}

void InputArguments::take_newest_run() {
  if (!lists.empty())
    throw Failure("--files-from " + printable(lists.front()) + ": names no trace");
  const std::vector<std::string> all = traces_in(".");
  traces = newest_run(all);
  if (traces.empty())
    throw Failure("TRACE is required: no trace (*.pb, *.sum) is in this folder" +
                  folders_with_traces(".") + " (see --help)");
  struct stat input {};
  const bool piped = ::fstat(STDIN_FILENO, &input) == 0 && S_ISFIFO(input.st_mode);
  complain("the newest run in this folder: " + first_few(traces, 3, printable) +
           (piped ? " (the name - reads the pipe)" : ""));
}

void InputArguments::finish() {
  if (reduce.utilization.parameters && !reduce.utilization.tokens_per_step)
    throw Failure("--parameters needs --tokens-per-step: 6ND is of the tokens of a step");
  reduce.progress = !quiet;
  for (const std::string& name : names)
    if (const auto error = reduce.names.add_file(name, text_of(name, kMaxNamesFileBytes)))
      throw Failure(*error);
  for (const std::string& name : formulas)
    if (const auto error = reduce.formulas.add_file(name, text_of(name, kMaxFormulaFileBytes)))
      throw Failure(*error);
  for (const std::string& list : lists)
    std::ranges::move(lines_of(list, "--files-from"), std::back_inserter(traces));
  if (traces.empty() && asks_for_traces) take_newest_run();
  std::vector<std::string> all;
  std::error_code ignored;
  for (const std::string& given : traces)
    for (const std::string& trace : expanded(given))
      if (std::filesystem::is_directory(trace, ignored))
        std::ranges::copy(traces_in(trace), std::back_inserter(all));
      else
        all.push_back(trace);
  traces = std::move(all);
}

std::vector<std::string> InputArguments::files() const {
  std::vector<std::string> all = traces;
  all.insert(all.end(), rules.files.begin(), rules.files.end());
  all.insert(all.end(), names.begin(), names.end());
  all.insert(all.end(), formulas.begin(), formulas.end());
  if (!reduce.counters.empty()) all.push_back(reduce.counters);
  return all;
}

void RuleArguments::add_to(manual::CommandLine& app, PhaseRules& rules) {
  using Texts = std::vector<std::string>;
  const auto add_rules = [&rules](const Texts& texts) {
    for (const auto& text : texts)
      if (const auto error = rules.add_user_rule(text)) throw Failure(*error);
  };
  several(app.add_option_function<Texts>(
              "--phase", add_rules,
              "Launches whose innermost matching range fits REGEX belong to phase NAME"),
          "NAME=REGEX");
  const auto add_files = [this, &rules](const Texts& names) {
    files = names;
    for (const auto& name : names)
      if (const auto error = rules.add_rule_file(name, text_of(name, kMaxRuleFileBytes)))
        throw Failure(*error);
  };
  several(app.add_option_function<Texts>("--rules", add_files,
                                         "Rules from FILE, tried before the built-in ones; `" +
                                             typed("rules") + "` prints those"),
          "FILE");
}

namespace {

bool use_color(const OutputArguments& output) {
  if (output.color != "auto") return output.color == "always";
  return output.file.empty() && shows_colors(STDOUT_FILENO);
}

// Columns of the terminal that is written to, or of $COLUMNS; 0 for neither.
size_t terminal_width(const OutputArguments& output) {
  winsize size{};
  if (output.file.empty() && ::isatty(STDOUT_FILENO) != 0 &&
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  return columns != nullptr ? std::strtoul(columns, nullptr, 10) : 0;
}

constexpr const char* kFileHelp = "Write to FILE instead of standard output (-)";
constexpr const char* kForceHelp = "Overwrite FILE where it exists";

}  // namespace

void OutputArguments::add_to(manual::CommandLine& app, std::vector<std::string> formats) {
  forms_ = formats;
  if (std::find(formats.begin(), formats.end(), "csv") != formats.end())
    app.add_option("--table", tables,
                   "The table that --format csv or json writes, by its key; "
                   "several for a folder")
        ->type_name("KEY[,KEY]")
        ->delimiter(',')
        ->allow_extra_args(false);
  // Each is seen in its place on the command line.
  app.add_option_function<std::string>(
         "--format",
         [this](const std::string& name) {
           outputs_.push_back({name, std::nullopt});
         },
         "Form of the output, if not given as the ending of FILE says (.html, .json, .csv, .md, "
         ".db); with several, each -o is of the --format before it")
      ->type_name("FORM")
      ->check(manual::one_of(std::move(formats)))
      ->default_str(format)
      ->trigger_on_parse();
  app.add_option_function<std::string>(
         "-o,--output",
         [this](const std::string& name) {
           if (outputs_.empty() || outputs_.back().file) outputs_.emplace_back();
           outputs_.back().file = name;
         },
         kFileHelp)
      ->type_name("FILE")
      ->trigger_on_parse();
  app.add_flag("--force", force, kForceHelp);
  app.add_option_function<size_t>(
         "--top", [this](const size_t& n) { given_top = top = n; }, "Lines of long tables")
      ->default_str(std::to_string(top))
      ->type_name("UINT")
      ->check(CLI::Range(size_t{1}, size_t{1000000}));
  app.add_option("--color", color, "Colours: auto, where a terminal shows them; always; never")
      ->type_name("WHEN")
      ->check(manual::one_of({"auto", "always", "never"}))
      ->capture_default_str();
}

void OutputArguments::add_file_to(manual::CommandLine& app) {
  app.add_option_function<std::string>(
         "-o,--output", [this](const std::string& name) { file = name == "-" ? "" : name; },
         kFileHelp)
      ->type_name("FILE");
  app.add_flag("--force", force, kForceHelp);
}

// Of one output the order does not matter.
void OutputArguments::pair_outputs() {
  if (outputs_.size() == 2 && !outputs_[0].format && !outputs_[1].file) {
    outputs_[0].format = outputs_[1].format;
    outputs_.pop_back();
  }
  const Output* to_standard_output = nullptr;
  std::set<std::string> files;
  for (Output& output : outputs_) {
    if (output.file == "-") output.file = "";
    const std::string name = output.file.value_or("");
    if (outputs_.size() > 1 && !output.format)
      throw Failure("-o " + printable(name) +
                    ": of which --format? Of several outputs each -o follows its --format");
    if (name.empty()) {
      if (to_standard_output != nullptr)
        throw Failure("--format " + *to_standard_output->format + " and --format " +
                      *output.format +
                      " would both go to standard output: name a file with -o behind each");
      to_standard_output = &output;
    } else if (!files.insert(std::filesystem::path(name).lexically_normal()).second) {
      throw Failure("-o " + printable(name) + ": two outputs of one name");
    }
  }
  if (outputs_.empty()) return;
  file = outputs_[0].file.value_or("");
  if (!outputs_[0].format) outputs_[0].format = form_of(file);
  format = outputs_[0].format.value_or(format);
}

std::vector<OutputArguments> OutputArguments::each() const {
  if (outputs_.empty()) return {*this};
  std::vector<OutputArguments> each;
  for (const Output& output : outputs_) {
    OutputArguments& one = each.emplace_back(*this);
    one.format = output.format.value_or(format);
    one.file = output.file.value_or("");
  }
  return each;
}

void OutputArguments::finish(std::vector<std::string> read) {
  inputs = std::move(read);
  pair_outputs();
  for (const OutputArguments& one : each()) {
    if (const char* kept = form_named(one.format).traits.kept_from_terminals)
      one.refuse_terminal(kept);
    refuse_other_forms(one);
    refuse_to_overwrite(one);
  }
}

void OutputArguments::refuse_terminal(const char* what) const {
  if (file.empty() && ::isatty(STDOUT_FILENO) != 0)
    throw Failure(std::string(what) + " is not for a terminal: name a file with -o");
}

TextOptions OutputArguments::text_options() const {
  constexpr size_t kDefault = 110;
  constexpr size_t kLeast = 20;
  constexpr size_t kMost = 1000;
  const size_t width = terminal_width(*this);
  const bool known = width > 0 && width <= kMost;
  return {use_color(*this), known ? std::max(width, kLeast) : kDefault, top, known};
}

namespace {

// The exit code for the case that one could not be used, which was said.
int open_traces(Reducer& reducer, const InputArguments& input) {
  for (const auto& path : input.traces) reducer.add(path);
  bool permission = false;
  for (const auto& error : reducer.errors()) {
    complain(error.message);
    permission = permission || error.permission;
  }
  return permission ? kExitPermission : kExitPartial;
}

// Fails where a --peak is of no device in the report.
void check_peaks(const Report& report) {
  const auto& unused = report.utilization.unused_overrides;
  if (unused.empty()) return;
  const std::string names = device_names(report);
  throw Failure("--peak '" + printable(cut(unused[0], 100)) +
                ":...': no device in these traces is named so; they have " +
                (names.empty() ? "none" : names));
}

}  // namespace

std::string device_names(const Report& report) {
  return joined(report.utilization.devices, ", ",
                [](const auto& device) { return printable(cut(device.name, 100)); });
}

Reduced reduce_traces(InputArguments& input) {
  input.reduce.choose_copies = most_complete;
  Reducer reducer(std::move(input.reduce));
  const int trouble = open_traces(reducer, input);
  if (!reducer.any_input()) return {std::nullopt, kExitNothing};
  size_t said = reducer.errors().size();
  const uint64_t skip = reducer.skips();
  Reduced result{reducer.run(), kExitFine};
  if (const StepsReport& steps = result.report->steps; skip > 0 && steps.skipped == 0)
    throw Failure("--skip-steps " + std::to_string(skip) + ": " + steps.missing);
  else if (skip > 0 && steps.count == 0)
    complain(steps.missing + ": the traces have " + to_grouped(steps.skipped) +
             "; give a lower number");
  for (; said < reducer.errors().size(); ++said) complain(reducer.errors()[said].message);
  if (const uint64_t missing = result.report->fact_launches_left_out; missing > 0)
    complain(to_grouped(missing) + " launches are in no row of table rows, which is full");
  if (const std::string runs = runs_notice(*result.report); !runs.empty())
    complain(printable(runs));
  if (result.report->given_names_unused)
    complain("--names: no launch has one of the names: are they of this program?");
  if (const auto& unused = result.report->unused_formulas; !unused.empty())
    complain(first_few(unused, 3, printable) + ": nothing that was launched counts by it");
  if (!result.report->errors.empty()) {
    result.exit_code = trouble;
  } else if (result.report->partial) {
    const bool cut_off =
        std::ranges::count(result.report->damage, Damage::kTornTail, &DamageReport::kind) > 0;
    complain(
        "the report is partial: " + printable(damage_words(*result.report, 4)) +
        (cut_off ? "; cut off: copy the file again, or wait until the program has ended" : ""));
    result.exit_code = kExitPartial;
  }
  check_peaks(*result.report);
  return result;
}

}  // namespace flopinj::reduce
