#include <collector/options/options.h>
#include <regex.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "habits.h"
#include "manual/command_line.h"
#include "option_help.h"
#include "printable_text.h"
#include "reducer.h"
#include "reducer_commands.h"
#include "running/live.h"
#include "simgpu/driver/chip.h"

namespace {

using flopinj::Options;
using flopinj::RecordingOption;
using flopinj::manual::CommandLine;

std::string long_name(const RecordingOption& setting) {
  return std::string(setting.option.substr(setting.option.find(',') + 1));
}

// Not shown, and refused with what to do instead.
void add_refusal(CommandLine& attach, const RecordingOption& setting) {
  const std::string text = "a program that runs takes no " + long_name(setting) +
                           (setting.variable == "FLOPINJ_FORCE"
                                ? ": name a file that is not there yet"
                                : ": give it as the program starts, to flopinj run --dormant");
  const auto refuse = [text](const CLI::results_t&) -> bool { throw CLI::ValidationError(text); };
  attach.add_option(std::string(setting.option), refuse)->expected(0, 1)->group("");
}

// What is wrong with a regular expression, as ": Unmatched ( or \\(": empty where nothing is.
std::string wrong_in_expression(const std::string& text) {
  constexpr std::string_view kRegex = "regex:";
  if (!text.starts_with(kRegex)) return "";
  regex_t compiled{};
  const int error = regcomp(&compiled, text.c_str() + kRegex.size(), REG_EXTENDED | REG_NOSUB);
  char words[100] = {};
  regerror(error, &compiled, words, sizeof words);
  regfree(&compiled);
  return error == 0 ? "" : std::string(" (") + words + ")";
}

// One option for each setting of the library.
void add_recording_options(CommandLine& line, Options& options, bool of_running) {
  for (const RecordingOption& setting : flopinj::recording_options()) {
    const std::string name(setting.option), help(flopinj::help_of(setting.variable));
    if (name.empty()) continue;
    if (of_running && !setting.by_request) {
      add_refusal(line, setting);
      continue;
    }
    std::vector<std::string>& given = options.given[std::string(setting.variable)];
    const auto grouped = [&](CLI::Option* one) {
      return of_running ? one : one->group(flopinj::group_of(setting.variable));
    };
    if (setting.value.empty()) {
      grouped(line.add_flag_callback(
          name, [&given] { given = {"1"}; }, help));
      continue;
    }
    CLI::Option* const option =
        grouped(line.add_option(name, given, help))->allow_extra_args(false);
    if (!setting.many) option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    if (!setting.choices.empty()) {
      option->type_name(std::string(setting.value));
      option->check(flopinj::manual::one_of({setting.choices.begin(), setting.choices.end()}));
      continue;
    }
    const auto check = [&setting](const std::string& text) {
      flopinj::Settings settings;
      return setting.read(settings, text)
                 ? std::string()
                 : "'" + text + "' is not understood" + wrong_in_expression(text) + ": it takes " +
                       std::string(setting.takes);
    };
    option->check(CLI::Validator(check, std::string(setting.value)));
  }
}

void add_simulator_options(CommandLine& line, Options& options, const char* help) {
  CLI::Option* simulate = line.add_flag("--simulate", options.simulate, help);
  line.add_option("--sim-devices", options.sim_devices, "Number of simulated GPUs")
      ->check(CLI::Range(0u, 16u))
      ->needs(simulate);
  std::vector<std::string> chips;
  for (const simgpu::Chip& chip : simgpu::chips()) chips.emplace_back(chip.name);
  line.add_option("--sim-chip", options.sim_chip, "Chip to simulate")
      ->type_name("CHIP")
      ->default_str("GH100")
      ->check(flopinj::manual::one_of(chips))
      ->needs(simulate);
}

void add_run_options(CommandLine& run, Options& options) {
  const auto [usual, what, job, simulator, expert] = flopinj::kRunGroups;
  run.groups = {std::begin(flopinj::kRunGroups), std::end(flopinj::kRunGroups)};
  run.prefix_command();
  run.operands = "[--] PROGRAM [ARGUMENT...]";
  const auto in = [&](const char* group) { run.option_defaults()->group(group); };
  in(usual);
  run.add_option("--report", options.page,
                 "When the program has ended, write the report of its traces to FILE, as a page "
                 "for any browser. flopinj stays until then, as the program's parent")
      ->type_name("FILE");
  run.add_flag(
      "--torch", options.torch,
      "Name modules and operators of the first network that trains with PyTorch, in as many "
      "steps as cost under 1 % of the time. Needs flopinj's Python package");
  run.add_flag("--summary", options.summary,
               "When the program has ended, replace each trace by its summary (NAME.sum), which "
               "long runs hardly make larger. flopinj stays until then, as the program's parent. A "
               "trace whose summary is not complete is kept");
  add_recording_options(run, options, false);
  in(job);
  run.add_flag("--dry-run,--print-env", options.print_env,
               "Run nothing; print the environment as shell exports, to paste into a job script");
  in(simulator);
  add_simulator_options(run, options,
                        "Run on a simulated GPU, on the CPU. Every launch is measured (--mode "
                        "full) unless --mode says otherwise");
  in(expert);
  run.add_flag("--preload", options.preload,
               "Also preload the library, for programs that clear the injection variables");
  run.get_help_ptr()->group(usual);
  run.set_help_all_flag("--help-all", "Show all options")->group(usual);
}

// As people type it: a program's name is the usual mistake.
CLI::Validator process_id() {
  CLI::Validator check(
      [](const std::string& text) -> std::string {
        pid_t pid = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
        if (error == std::errc() && end == text.data() + text.size() && pid > 0) return "";
        return "'" + flopinj::printable(text.substr(0, 100)) +
               "' is no process id: it is the number of a running process (pgrep -f NAME)";
      },
      "");
  return check;
}

void add_processes(CommandLine& line, Options& options, const char* help) {
  line.add_option("PID", options.processes, help)->type_name("")->check(process_id());
  line.first_words = flopinj::processes_to_look_at;
}

// For commands that only look.
void add_any_process(CommandLine& line, Options& options) {
  add_processes(line, options,
                "The process. If not given: the only one that can be shown; of several, a list");
  line.get_option("PID")->expected(0, 1);
}

void add_process(CommandLine& line, Options& options) {
  add_processes(line, options, "The process. If not given: a list");
  line.get_option("PID")->expected(0, 1);
}

void add_attach_options(CommandLine& attach, Options& options) {
  add_process(attach, options);
  attach.first_words = flopinj::processes_to_attach_to;
  add_recording_options(attach, options, true);
  attach.add_flag("--never-enter", options.never_enter,
                  "Do not enter a program that was started without flopinj");
}

void add_status_options(CommandLine& status, Options& options) {
  add_any_process(status, options);
  status.add_flag("--json", options.json, "As one JSON object");
}

void add_every(CommandLine& line, Options& options, double usual) {
  options.every_s = usual;
  line.add_option("--every", options.every_s, "Seconds between two looks")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 86'400.0));
}

void add_top_options(CommandLine& top, Options& options) {
  add_any_process(top, options);
  add_every(top, options, 2);
  top.add_flag("--once", options.once, "Show it once");
  top.add_flag("--json", options.json,
               "Once, as JSON: {\"status\": as flopinj status, \"report\": as flopinj report}");
}

void add_metrics_options(CommandLine& metrics, Options& options) {
  add_processes(metrics, options,
                "The processes. If none is given: all that can be shown, until you stop it");
  metrics
      .add_option("-o,--output", options.file,
                  "Write them to this file repeatedly, for the textfile collector of "
                  "node_exporter; the file is removed at the end")
      ->type_name("FILE");
  CLI::Option* port = metrics.add_option("--port", options.port, "Serve them by HTTP")
                          ->type_name("PORT")
                          ->check(CLI::Range(1u, 65'535u));
  metrics
      .add_option("--address", options.address,
                  "Serve them on this address of the machine, to all who reach it; 0.0.0.0: on all "
                  "of its addresses. If not given: on 127.0.0.1, to this machine only")
      ->type_name("ADDRESS")
      ->needs(port);
  add_every(metrics, options, 15);
}

void add_doctor_options(CommandLine& doctor, Options& options) {
  doctor.add_flag(
      "--count", options.count,
      "Also profile kernels whose operation counts are known, on the first GPU, and compare the "
      "counts with theory. It takes about a minute. The findings are written to a file that later "
      "recordings read; it does not identify the machine");
  add_simulator_options(doctor, options, "Look at the simulated GPU instead of this machine's");
}

void add_import_options(CommandLine& line, Options& options) {
  line.add_option("FILE", options.recordings, "What another profiler has written")
      ->type_name("")
      ->required();
  line.add_option("-o,--output", options.file,
                  "The trace; \"-\" is standard output. Of several files: a folder, in which each "
                  "has a trace of its name")
      ->type_name("OUT")
      ->required();
  line.add_option("--gpu", options.gpu,
                  "The GPU's name, where the file does not say it, as in flopinj peaks")
      ->type_name("NAME");
  line.add_option("--counters", options.counters,
                  "Counters of the same program: what ncu --csv --page raw has printed")
      ->type_name("CSV");
  line.add_flag("--force", options.force, "Overwrite traces that exist");
}

void add_no_options(CommandLine&, Options&) {}

void add_fleet_options(CommandLine& fleet, Options&) {
  fleet.prefix_command();
  fleet.operands = "COMMAND [ARGUMENT...]";
}

// The package's own flopinj does not come here (python/flopinj/_programs.py).
int fleet(const Options&) {
  std::cerr << "flopinj: fleet is a part of the Python package: in a clone of flopinj, pip "
               "install '.[fleet]', then python -m flopinj.fleet\n";
  return flopinj::kExitCannotRun;
}

struct Command {
  const char *name, *purpose, *text;
  void (*add_options)(CommandLine&, Options&);
  int (*action)(const Options&);
  std::vector<flopinj::manual::Entry> examples;
};
const Command kCommands[] = {
    {"run",
     "run a program under the profiler",
     "Runs a program under the profiler. It keeps its process id, signals and exit code; when it "
     "has ended, one line says what was recorded and how to read it. Words behind \"--\" are the "
     "program and its arguments.",
     add_run_options,
     flopinj::run,
     {{"flopinj run -- python train.py", "profile a training script; the trace is flop-PID.pb"},
      {"flopinj run --report train.html -- python train.py", "with its report as a page"},
      {"flopinj run -o job-%r.pb -- python train.py", "one trace for each rank of a job"},
      {"flopinj run --print-env -o job-%r.pb > env.sh", "the same as variables for a job script"}}},
    {"demo",
     "show what a report looks like, without a GPU",
     "Trains a small GPT on a simulated GPU under the profiler, prints its report, and writes it "
     "as a page. The trace is flopinj-demo.pb, the page flopinj-demo.html, both in the current "
     "folder; those of a demo before are replaced.",
     add_no_options,
     flopinj::demo,
     {{"flopinj demo", "a minute at most"}}},
    {"attach",
     "record a program that is already running",
     "Begins to record a program that is already running. One that was started with flopinj run "
     "--dormant is asked to record. Any other program is entered through one of its waiting "
     "threads, and its NVTX ranges are not seen. After flopinj detach the program goes on as "
     "before, and can be attached to again.",
     add_attach_options,
     flopinj::attach,
     {{"flopinj attach 4711", "begin; the trace is flop-4711.pb"},
      {"flopinj attach --duration 30s -o now.pb 4711", "record for half a minute"}}},
    {"detach",
     "end the recording of a program",
     "Ends the recording of a program; the program goes on. Counters, callbacks and threads of the "
     "recording are given back.",
     add_process,
     flopinj::detach,
     {{"flopinj detach 4711", "end it, and say how to read the trace"}}},
    {"status",
     "say what is recorded of a program",
     "Says whether a program is recorded, where to, and how far the recording is.",
     add_status_options,
     flopinj::status,
     {{"flopinj status 4711", "launches, coverage, FLOP and HFU so far, cost"}}},
    {"top",
     "show the report of a program while it runs",
     "Shows the status of a recording and the report of its trace so far, again and again until "
     "the program ends. A trace that takes long to read is read less often. On a terminal, keys "
     "pause it, sort kernels, show all sections or the next recorded process; the last line names "
     "them.",
     add_top_options,
     flopinj::top,
     {{"flopinj top 4711", "HFU, phases and kernels so far"}}},
    {"metrics",
     "give figures of running programs to Prometheus",
     "Prints the figures of recordings as metrics of Prometheus, or serves them until the programs "
     "have ended. Each has the labels Hostname, UUID (of the GPU, where the process has one: both "
     "as DCGM's exporter has them), rank, job_id and label_NAME (flopinj run --label); pid only "
     "where two processes have the same labels.",
     add_metrics_options,
     flopinj::metrics,
     {{"flopinj metrics 4711", "print them once"},
      {"flopinj metrics --port 9178", "serve the figures of all processes to this machine"},
      {"flopinj metrics --port 9178 --address 0.0.0.0", "serve them to a Prometheus elsewhere"}}},
    {"doctor",
     "say what a profiled program would find on this machine",
     "Says what a profiled program would find on this machine, and what to do about what is "
     "missing.",
     add_doctor_options,
     flopinj::doctor,
     {{"flopinj doctor", "check driver, CUPTI and permission before a long job"},
      {"flopinj doctor --simulate", "the same of the simulated GPU, without one"},
      {"flopinj doctor --count", "check on this GPU whether counts are true"}}},
    {"import",
     "make traces of what other profilers have recorded",
     "Makes a trace of a recording by torch.profiler (its JSON, .gz too), by Nsight Systems (its "
     "SQLite: nsys export --type sqlite) or by Nsight Compute (what ncu --csv --page raw prints). "
     "flopinj report and the other commands read such files themselves; a trace is smaller, and "
     "read faster. Only those of Nsight Compute have counters, and no times; --counters gives them "
     "to a recording with times.",
     add_import_options,
     flopinj::import,
     {{"flopinj import rank0.pt.trace.json.gz -o rank0.pb", "a trace of one file"},
      {"flopinj import *.pt.trace.json.gz -o traces/", "a folder with a trace of each"},
      {"flopinj import --gpu 'NVIDIA H100 80GB HBM3' report.sqlite -o report.pb",
       "of an export without the GPU's name"},
      {"flopinj import rank0.pt.trace.json --counters ncu.csv -o rank0.pb",
       "times of one, counters of the other"}}},
    {"fleet",
     "many jobs at once (with the Python package)",
     "Puts the traces of many jobs into tables, which SQL can query. It is part of the Python "
     "package: in a clone of flopinj, pip install '.[fleet]', then flopinj fleet --help or python "
     "-m flopinj.fleet --help.",
     add_fleet_options,
     fleet,
     {{"flopinj fleet ingest runs/ --out lake", "take in all traces below runs/"},
      {"flopinj fleet stragglers --lake lake", "ranks that are slower than others"}}}};

int usage_error(const std::string& problem) {
  std::cerr << "flopinj: " << problem << " (see flopinj run --help)\n";
  return flopinj::kExitUsage;
}

bool is_reducers(const std::string& command) {
  return std::ranges::any_of(flopinj::kReducerCommands,
                             [&](const auto& one) { return command == one.name; });
}

bool is_no_command(const std::string& word) {
  return !word.starts_with("-") &&
         std::ranges::none_of(kCommands, [&](const Command& one) { return word == one.name; });
}

flopinj::manual::Program about(CommandLine& line) {
  flopinj::manual::Program program{
      .line = line,
      .usual = "",
      .version = FLOPINJ_VERSION,
      .purpose = "profile the floating-point operations of a CUDA program",
      .exit_status =
          {{"the program's", "run: its exit code, or its signal, as without flopinj"},
           {"0", "demo: the report and the page are there"},
           {"0", "doctor: all is well"},
           {"0", "attach, detach, status, top, metrics: it is done"},
           {"1", "doctor: something is missing; with --count also: a count is wrong or missing"},
           {"1", "attach, detach, status, top, metrics: it cannot be done; the line says why"},
           {"0", "import: all files are traces now"},
           {"1", "import: a file is none; a line says why"},
           {"2", "the options are wrong, or the trace could not be written: nothing was started"},
           {"4", "doctor: no permission to read the counters"},
           {"125", "run: files of flopinj are missing"},
           {"125", "fleet: the Python package is missing"},
           {"126", "run: the program cannot be executed"},
           {"127", "run: there is no such program"}},
      .environment = {},
      .files = {{"flop-PID.pb", "a trace, where no other name is given"},
                {"~/.local/state/flopinj", "what doctor --count has found, in files to be sent in"},
                {"lib/libflopinj.so",
                 "the library, beside bin/flopinj in the tree that both are in"},
                {"lib/flopinj/simgpu",
                 "the simulated GPU's libcuda.so.1, libcudart.so and libcupti.so.13"}},
      .see_also = "flopreduce",
      .others_options = flopinj::others_options()};
  for (const RecordingOption& setting : flopinj::recording_options())
    program.environment.push_back(
        {std::string(setting.variable),
         setting.option.empty()
             ? std::string(flopinj::help_of(setting.variable))
             : "as run " + long_name(setting) + ": it takes " + std::string(setting.takes)});
  program.environment.push_back(
      {"CUDA_INJECTION64_PATH", "the library that CUDA loads into a program; run sets it to ours"});
  program.environment.push_back(
      {"NVTX_INJECTION64_PATH", "the library that has the program's NVTX ranges; run sets it too"});
  return program;
}

// The program is what run leaves of its words, and what is behind the first "--", untouched.
int run_program(const CLI::App& run, Options& options, const std::vector<std::string>& before,
                const std::vector<std::string>& behind, bool has_separator) {
  options.program = run.remaining();
  options.typed.assign(before.begin() + 1,
                       before.end() - static_cast<ptrdiff_t>(options.program.size()));
  if (!options.program.empty() && has_separator) options.program.emplace_back("--");  // its own
  options.program.insert(options.program.end(), behind.begin(), behind.end());
  if (options.program.empty() && !options.print_env)
    return usage_error(
        "no program to run: it goes behind --, as in flopinj run -- python train.py");
  try {
    return flopinj::run(options);
  } catch (const std::invalid_argument& error) {
    return usage_error(error.what());
  } catch (const std::exception& error) {
    std::cerr << "flopinj: " << error.what() << "\n";
    return dynamic_cast<const flopinj::CannotRecord*>(&error) != nullptr ? flopinj::kExitUsage
                                                                         : flopinj::kExitCannotRun;
  }
}

int flopinj_main(std::vector<std::string> arguments) {
  CommandLine line(
      "flopinj", "",
      "Profiles the floating-point operations of a CUDA program, without a change to it.");
  line.set_version_flag("--version", "flopinj " FLOPINJ_VERSION, "Show the version");
  line.require_subcommand(1);
  std::map<std::string, Options> options;  // by command
  for (const Command& command : kCommands) {
    CommandLine& one = line.add_command(command.name, command.purpose, command.text);
    Options& given = options[command.name];
    command.add_options(one, given);
    one.action = [&command, &given] { return command.action(given); };
    one.examples = command.examples;
  }
  for (const flopinj::ReducerCommand& command : flopinj::kReducerCommands) {
    const std::string name = command.name;
    line.add_command(name, command.purpose, "Its options: flopinj " + name + " --help.").operands =
        "[ARGUMENT...]";
  }
  const flopinj::manual::Program program = about(line);
  arguments = flopinj::manual::help_last(std::move(arguments));
  const size_t first = !arguments.empty() && arguments.front() == "--complete" ? 1 : 0;
  // A shell that asks about one word may want the rest of that word.
  const bool more = arguments.size() > first + 1;
  if (arguments.size() > first && is_reducers(arguments[first]) && (first == 0 || more))
    return flopinj::become_reducer(arguments);
  if (const auto done = flopinj::manual::answer(std::cout, program, arguments))
    return *done ? flopinj::kExitOk : flopinj::kExitUsage;

  if (!arguments.empty() && is_no_command(arguments.front()))
    if (const std::string spelling = flopinj::line_meant_by(arguments, line); !spelling.empty()) {
      std::cerr << "flopinj: '" << flopinj::printable(arguments.front()) << "' is no command of "
                << "flopinj. Did you mean: " << spelling << "\n";
      return flopinj::kExitUsage;
    }
  const auto separator = std::ranges::find(arguments, "--");
  const bool has_separator = separator != arguments.end();
  const std::vector<std::string> behind(has_separator ? separator + 1 : separator, arguments.end());
  arguments.erase(separator, arguments.end());
  const std::vector<std::string> before = arguments;
  const auto parsed = flopinj::manual::parse(program, std::move(arguments), flopinj::kExitUsage);
  if (!parsed.error.empty()) std::cerr << "flopinj: " << parsed.error << "\n";
  if (parsed.exit_code) return *parsed.exit_code;
  if (parsed.command->get_name() == "run")
    return run_program(*parsed.command, options["run"], before, behind, has_separator);
  if (has_separator)
    return usage_error("only run takes a program: " +
                       flopinj::instead_of_command(parsed.command->get_name(), behind));
  return parsed.command->action();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return flopinj_main(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::cerr << "flopinj: " << error.what() << "\n";
    return flopinj::kExitCheckFailed;
  }
}
