#include <collector/options/options.h>

#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "doctor.h"
#include "exit_codes.h"
#include "install_tree.h"
#include "manual/command_line.h"
#include "run.h"
#include "running/attach.h"
#include "running/top.h"
#include "simgpu/driver/chip.h"

namespace {

using flopinj::RunOptions;
using flopinj::manual::CommandLine;

// Not shown, and refused with what to do instead.
void add_refusal(CommandLine& attach, const flopinj::RecordingOption& setting) {
  const std::string name(setting.option);
  const std::string text = "a program that runs takes no " + name.substr(name.find(',') + 1) +
                           (setting.variable == "FLOPINJ_FORCE"
                                ? ": name a file that is not there yet"
                                : ": give it as the program starts, to flopinj run --dormant");
  const auto refuse = [text](const CLI::results_t&) -> bool { throw CLI::ValidationError(text); };
  attach.add_option(name, refuse)->expected(0, 1)->group("");
}

// One option for each setting of the library.
using Given = std::map<std::string, std::vector<std::string>>;
void add_recording_options(CommandLine& run, Given& all_given, bool of_running = false) {
  for (const flopinj::RecordingOption& setting : flopinj::recording_options()) {
    const std::string name(setting.option), help(setting.help);
    if (name.empty()) continue;
    if (of_running && !setting.by_request) {
      add_refusal(run, setting);
      continue;
    }
    std::vector<std::string>& given = all_given[std::string(setting.variable)];
    if (setting.value.empty()) {
      run.add_flag_callback(
          name, [&given] { given = {"1"}; }, help);
      continue;
    }
    CLI::Option* const option = run.add_option(name, given, help)->allow_extra_args(false);
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
                 : "'" + text + "' is not understood: it takes " + std::string(setting.takes);
    };
    option->check(CLI::Validator(check, std::string(setting.value)));
  }
}

void add_run_options(CommandLine& run, RunOptions& options) {
  add_recording_options(run, options.given);
  run.add_flag("--preload", options.preload,
               "Also preload the library, for programs that clear the injection variables");
  run.add_flag("--torch", options.torch,
               "Name modules and operators of the first network that trains with PyTorch, in its "
               "first 20 steps. The Python package of flopinj does it");
  run.add_flag(
      "--summary", options.summary,
      "When the program has ended, put a summary (NAME.sum), which hardly grows with the "
      "run, in the place of each trace. Until then flopinj stays, as the program's parent; "
      "a trace without a whole summary is kept");
  CLI::Option* simulate =
      run.add_flag("--simulate", options.simulate, "Run on a simulated GPU, on the CPU");
  run.add_option("--sim-devices", options.sim_devices, "Number of simulated GPUs")
      ->check(CLI::Range(0u, 16u))
      ->needs(simulate);
  std::vector<std::string> chips;
  for (const simgpu::Chip& chip : simgpu::chips()) chips.emplace_back(chip.name);
  run.add_option("--sim-chip", options.sim_chip, "Chip to simulate")
      ->type_name("CHIP")
      ->default_str("GH100")
      ->check(flopinj::manual::one_of(chips))
      ->needs(simulate);
  run.add_flag("--dry-run,--print-env", options.print_env,
               "Run nothing; print the environment as shell exports, to paste into a job script");
}

// Everything after the first "--" is the program's, untouched. Without one, the program starts at
// the first word that is not an option of ours.
std::vector<std::string> split_off_program(std::vector<std::string>& arguments,
                                           bool& has_separator) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] != "--") continue;
    const auto at = arguments.begin() + static_cast<std::ptrdiff_t>(i);
    std::vector<std::string> program(at + 1, arguments.end());
    arguments.erase(at, arguments.end());
    has_separator = true;
    return program;
  }
  has_separator = false;
  return {};
}

int usage_error(const std::string& problem) {
  std::cerr << "flopinj: " << problem << " (see flopinj run --help)\n";
  return flopinj::kExitUsage;
}

flopinj::manual::Program about(const CommandLine& line) {
  flopinj::manual::Program program;
  program.name = "flopinj";
  program.version = FLOPINJ_VERSION;
  program.purpose = "profile the floating-point operations of a CUDA program";
  program.commands = flopinj::manual::describe(line, "");
  program.exit_status = {
      {"the program's", "run: its exit code, or its signal, as without flopinj"},
      {"0", "doctor: all is well"},
      {"0", "attach, detach, status, top, metrics: it is done"},
      {"1", "doctor: something is missing"},
      {"1", "attach, detach, status, top, metrics: it cannot be done; the line says why"},
      {"2", "the options are wrong, or the trace could not be written: nothing was started"},
      {"4", "doctor: no permission to read the counters"},
      {"125", "run: files of flopinj are missing; fleet: the Python package is missing"},
      {"126", "run: the program cannot be executed"},
      {"127", "run: there is no such program"}};
  for (const flopinj::RecordingOption& setting : flopinj::recording_options()) {
    std::string text(setting.option.empty() ? setting.help
                                            : "as run " + std::string(setting.option));
    if (const size_t comma = text.find(','); !setting.option.empty() && comma != text.npos)
      text = "as run " + text.substr(comma + 1);
    if (!setting.option.empty()) text += ": it takes " + std::string(setting.takes);
    program.environment.push_back({std::string(setting.variable), text});
  }
  program.environment.push_back(
      {"CUDA_INJECTION64_PATH", "the library that CUDA loads into a program; run sets it to ours"});
  program.environment.push_back(
      {"NVTX_INJECTION64_PATH", "the library that has the program's NVTX ranges; run sets it too"});
  program.files = {
      {"flop-PID.pb", "a trace, where no other name is given"},
      {"lib/libflopinj.so", "the library, beside bin/flopinj in the tree that both are in"},
      {"lib/flopinj/simgpu", "the simulated GPU's libcuda.so.1 and libcupti.so.13"}};
  program.see_also = {"flopreduce"};
  return program;
}

// The table of options and variables in docs/options.md.
int write_option_table() {
  std::cout << "| option | variable |\n|---|---|\n";
  for (const flopinj::RecordingOption& setting : flopinj::recording_options()) {
    std::string names(setting.option);
    if (names.empty()) continue;
    if (const size_t comma = names.find(','); comma != names.npos) names.replace(comma, 1, "`, `");
    std::cout << "| `" << names << "` | `" << setting.variable << "` |\n";
  }
  return std::cout.flush() ? 0 : flopinj::kExitUsage;
}

flopinj::InstallTree tree() { return flopinj::InstallTree::of_this_program(); }

// Commands for a process that runs already.
struct RunningOptions {
  flopinj::AttachOptions attach;
  flopinj::TopOptions top;
  flopinj::MetricsOptions metrics;
  bool never_enter = false, json = false;
};

void add_running_commands(CommandLine& line, RunningOptions& options) {
  const auto takes_process = [&options](CommandLine& command) {
    command.add_option("PID", options.attach.pid, "The process")
        ->type_name("")
        ->required()
        ->check(CLI::PositiveNumber);
  };
  CommandLine& attach = line.add_command(
      "attach", "record a program that runs already",
      "Begins to record a program that runs already. One that was started with flopinj run "
      "--dormant is asked; another one is entered by one of its threads that waits: its "
      "NVTX ranges are not seen then. The program goes on as before when it is let go of, and may "
      "be attached to again.");
  takes_process(attach);
  add_recording_options(attach, options.attach.given, true);
  attach.add_flag("--never-enter", options.never_enter,
                  "Only ask: leave a program alone that was started without flopinj");
  attach.action = [&options] {
    options.attach.enter = !options.never_enter;
    return flopinj::attach(options.attach, tree());
  };
  attach.examples = {{"flopinj attach 4711", "begin; the trace is flop-4711.pb"},
                     {"flopinj attach --duration 30s -o now.pb 4711", "record for half a minute"}};
  CommandLine& detach = line.add_command(
      "detach", "let go of a program that is recorded",
      "Ends the recording of a program, which goes on. Counters, callbacks and threads of the "
      "recording are given back.");
  takes_process(detach);
  detach.action = [&options] { return flopinj::detach(options.attach.pid); };
  detach.examples = {{"flopinj detach 4711", "end it, and say how to read the trace"}};
  CommandLine& status = line.add_command(
      "status", "say what is recorded of a program",
      "Says whether a program is recorded, where to, and how far the recording is.");
  takes_process(status);
  status.add_flag("--json", options.json, "As one JSON object");
  status.action = [&options] { return flopinj::status(options.attach.pid, tree(), options.json); };
  status.examples = {{"flopinj status 4711", "launches, coverage, FLOP and HFU so far, cost"}};
  const auto refreshes = [](CommandLine& command, double& seconds, const char* usual) {
    command.add_option("--every", seconds, "Seconds between two looks")
        ->type_name("SECONDS")
        ->default_str(usual)
        ->check(CLI::Range(0.1, 86'400.0));
  };
  CommandLine& top = line.add_command(
      "top", "show the report of a program while it runs",
      "Shows the status of a recording and the report of its trace so far, again and again until "
      "the program ends. A trace that takes long to read is read less often.");
  takes_process(top);
  refreshes(top, options.top.every_s, "2");
  top.add_flag("--once", options.top.once, "Show it once");
  top.add_flag("--json", options.top.json,
               "Once, as JSON: {\"status\": as flopinj status, \"report\": as flopreduce}");
  top.action = [&options] {
    options.top.pid = options.attach.pid;
    return flopinj::top(options.top, tree());
  };
  top.examples = {{"flopinj top 4711", "HFU, phases and kernels so far"}};
  CommandLine& metrics = line.add_command(
      "metrics", "give figures of running programs to Prometheus",
      "Prints the figures of recordings as metrics of Prometheus, or serves them until the "
      "programs have ended.");
  metrics.add_option("PID", options.metrics.processes, "The processes")
      ->type_name("")
      ->required()
      ->check(CLI::PositiveNumber);
  metrics
      .add_option("-o,--output", options.metrics.file,
                  "Write them to this file again and again, for the textfile collector of "
                  "node_exporter; it is removed at the end")
      ->type_name("FILE");
  metrics.add_option("--port", options.metrics.port, "Serve them by HTTP on 127.0.0.1")
      ->type_name("PORT")
      ->check(CLI::Range(1u, 65'535u));
  refreshes(metrics, options.metrics.every_s, "15");
  metrics.action = [&options] { return flopinj::metrics(options.metrics, tree()); };
  metrics.examples = {{"flopinj metrics 4711", "print them once"},
                      {"flopinj metrics --port 9178 4711 4712", "serve two processes' figures"}};
}

// The program is what run leaves of its words, and `after`, what is behind "--".
int run_program(const CLI::App& run, RunOptions& options, const std::vector<std::string>& after,
                bool has_separator) {
  options.program = run.remaining();
  if (!options.program.empty()) {
    std::vector<std::string> names;
    for (const CLI::Option* option : run.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    if (options.program.front().starts_with("-")) {
      const std::string given =
          options.program.front().substr(0, options.program.front().find('='));
      return usage_error("unknown option " + given + flopinj::manual::did_you_mean(given, names));
    }
    if (has_separator) options.program.emplace_back("--");  // the program's own
  }
  options.program.insert(options.program.end(), after.begin(), after.end());
  if (options.program.empty() && !options.print_env) return usage_error("no program to run");
  try {
    return flopinj::run(options, tree());
  } catch (const std::invalid_argument& error) {
    return usage_error(error.what());
  } catch (const flopinj::CannotRecord& error) {
    std::cerr << "flopinj: " << error.what() << "\n";
    return flopinj::kExitUsage;
  } catch (const std::exception& error) {
    std::cerr << "flopinj: " << error.what() << "\n";
    return flopinj::kExitCannotRun;
  }
}

std::unique_ptr<CommandLine> command_line(RunOptions& options, RunningOptions& running) {
  auto line = std::make_unique<CommandLine>(
      "flopinj", "",
      "Profiles the floating-point operations of a CUDA program, without a change to it.");
  line->set_version_flag("--version", "flopinj " FLOPINJ_VERSION, "Show the version");
  line->require_subcommand(1);
  CommandLine& run = line->add_command(
      "run", "run a program under the profiler",
      "Runs a program under the profiler. It keeps its process id, signals and exit code; when it "
      "has ended, one line says what was recorded and how to read it. Words behind \"--\" are the "
      "program and its arguments.");
  run.prefix_command();
  run.operands = "[--] PROGRAM [ARGUMENT...]";
  add_run_options(run, options);
  run.examples = {
      {"flopinj run -- python train.py", "profile a training script; the trace is flop-PID.pb"},
      {"flopinj run -o job-%r.pb -- python train.py", "one trace for each rank of a job"},
      {"flopinj run --simulate -- ./trainer", "try it without a GPU"},
      {"flopinj run --print-env -o job-%r.pb > env.sh", "the same as variables for a job script"}};
  add_running_commands(*line, running);
  CommandLine& doctor = line->add_command(
      "doctor", "say what a profiled program would find on this machine",
      "Says what a profiled program would find on this machine, and what to do about what is "
      "missing.");
  doctor.action = [] { return flopinj::doctor(tree()); };
  doctor.examples = {{"flopinj doctor", "check driver, CUPTI and permission before a long job"}};
  CommandLine& fleet = line->add_command(
      "fleet", "many jobs at once (with the Python package)",
      "Takes the traces of many jobs into tables, and asks these with SQL. It is a part of the "
      "Python package: pip install 'flopinj[fleet]', then flopinj fleet --help or python -m "
      "flopinj.fleet --help.");
  fleet.prefix_command();
  fleet.operands = "COMMAND [ARGUMENT...]";
  fleet.action = [] {
    // The package's own flopinj does not come here (python/flopinj/_programs.py).
    std::cerr << "flopinj: fleet is a part of the Python package: pip install 'flopinj[fleet]', "
                 "then python -m flopinj.fleet\n";
    return flopinj::kExitCannotRun;
  };
  fleet.examples = {{"flopinj fleet ingest runs/ --out lake", "take in all traces below runs/"},
                    {"flopinj fleet stragglers --lake lake", "ranks that are slower than others"}};
  return line;
}

int flopinj_main(std::vector<std::string> arguments) {
  RunOptions options;
  RunningOptions running;
  const auto line = command_line(options, running);
  const flopinj::manual::Program program = about(*line);
  if (arguments == std::vector<std::string>{"--generate", "options"}) return write_option_table();
  if (const auto done = flopinj::manual::answer(std::cout, program, arguments))
    return *done ? flopinj::kExitOk : flopinj::kExitUsage;

  bool has_separator = false;
  std::vector<std::string> after = split_off_program(arguments, has_separator);
  const auto parsed =
      flopinj::manual::parse(*line, program, "", std::move(arguments), flopinj::kExitUsage);
  if (!parsed.error.empty()) std::cerr << "flopinj: " << parsed.error << "\n";
  if (parsed.exit_code) return *parsed.exit_code;
  const CLI::App* const run = line->get_subcommand("run");
  if (parsed.command == run) return run_program(*run, options, after, has_separator);
  if (has_separator) return usage_error("only run takes a program");
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
