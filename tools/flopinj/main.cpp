#include <collector/rank_list.h>
#include <collector/waiting_kernels.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "doctor.h"
#include "exit_codes.h"
#include "install_tree.h"
#include "manual/describe.h"
#include "run.h"

namespace {

using flopinj::RunOptions;
using flopinj::manual::describe;

// Empty, or what is wrong with the value: as CLI11 wants it.
std::string percent(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good =
      error == std::errc{} && end == text.data() + text.size() && value > 0 && value <= 100;
  return good ? "" : "'" + text + "' is no per cent above 0 and up to 100";
}
std::string percent_or_none(const std::string& text) {
  return text == "none" ? std::string() : percent(text);
}
std::string rank_list(const std::string& text) {
  return flopinj::RankList::parse(text)
             ? ""
             : "'" + text + "' is no list of ranks: 0,8-15 or all or none";
}

std::string name_patterns(const std::string& text) {
  return flopinj::parse_patterns(text) ? "" : "an empty pattern matches every kernel";
}

void add_run_options(CLI::App& run, RunOptions& options) {
  run.add_option("-o,--output", options.output,
                 "Trace to write: a file, a FIFO, - for stdout, unix:/path for a listening socket. "
                 "%p is the process id, %h the host, %r the rank, %q{NAME} an environment variable")
      ->capture_default_str();
  run.add_flag("--force", options.force, "Overwrite an existing trace");
  run.add_option("--level", options.level, "Every launch, or counts per kernel and range")
      ->check(CLI::IsMember({"launches", "tally"}));
  run.add_option("--mode", options.mode,
                 "How much to measure: each distinct kernel a few times; every launch, by replay "
                 "(slow: the reference); times and launches; launches; nothing")
      ->check(CLI::IsMember({"multiplex", "full", "timing", "count", "off"}));
  run.add_option(
         "--budget", options.budget,
         "Most that reading counters may cost, in per cent of wall time, or none (1). What 200 s "
         "earn, 2 s at 1 %, may be spent at the start on kernels without counts")
      ->check(CLI::Validator(percent_or_none, "PERCENT|none"));
  run.add_option("--until-covered", options.until_covered,
                 "Stop measuring once so many per cent of GPU time have complete counts; kernels "
                 "that cannot be measured are left out")
      ->check(CLI::Validator(percent, "PERCENT"));
  run.add_option("--measure-ranks", options.measure_ranks,
                 "Ranks of the job that read counters, the others count and time: 0,8-15 or all or "
                 "none (0)")
      ->check(CLI::Validator(rank_list, "RANKS"));
  run.add_option(
         "--never-measure", options.never_measure,
         "Kernels that wait for the host or for a later launch, and so would hang while "
         "they are measured: parts of their mangled names, in any case, beside the built-in "
         "ones that doctor shows. May be repeated")
      ->allow_extra_args(false)
      ->check(CLI::Validator(name_patterns, "PATTERN[,PATTERN]"));
  run.add_flag(
      "--measure-graphs", options.measure_graphs,
      "Also read counters of CUDA graph launches, for kernels that run in graphs alone. Not "
      "tried on hardware yet: a graph that cannot run one kernel at a time would hang");
  run.add_option("--log-level", options.log_level, "What the library says on stderr")
      ->check(CLI::IsMember({"off", "error", "warn", "info", "debug"}));
  run.add_option("--flush-ms", options.flush_ms,
                 "Longest time that data stays in memory, in milliseconds")
      ->check(CLI::Range(10, 1000));
  run.add_option("--plan-wait-ms", options.plan_wait_ms,
                 "How long a context's first launch waits for the counters to be ready, in "
                 "milliseconds, so that it is measured too (0; mode full: 60000)")
      ->check(CLI::Range(0, 60000));
  run.add_option("--cupti", options.cupti, "The libcupti to load, where the program brings none");
  run.add_flag("--preload", options.preload,
               "Also preload the library, for programs that clear the injection variables");
  CLI::Option* simulate =
      run.add_flag("--simulate", options.simulate, "Run on a simulated GPU, on the CPU");
  run.add_option("--sim-devices", options.sim_devices, "Number of simulated GPUs")
      ->check(CLI::Range(0u, 16u))
      ->needs(simulate);
  run.add_option("--sim-chip", options.sim_chip, "Chip to simulate, as in CUPTI: GH100, GA100, ...")
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
  std::cerr << "flopinj: " << problem << "; see flopinj --help\n";
  return flopinj::kExitUsage;
}

// The manual page and the shell completions, which the build calls for.
int write_manual(const std::vector<flopinj::manual::Command>& commands, const std::string& form) {
  const flopinj::manual::Program program{"flopinj",
                                         FLOPINJ_VERSION,
                                         "profile the floating-point operations of a CUDA program",
                                         commands,
                                         {"flopreduce"}};
  const bool written = flopinj::manual::write(std::cout, program, form) && std::cout.flush();
  return written ? 0 : flopinj::kExitUsage;
}

int flopinj_main(std::vector<std::string> arguments) {
  CLI::App app("Profiles the floating-point operations of a CUDA program by injection.", "flopinj");
  app.set_version_flag("--version", "flopinj " FLOPINJ_VERSION);
  app.require_subcommand(1);

  RunOptions options;
  CLI::App* run = app.add_subcommand(
      "run", "Run a program under the profiler: flopinj run [options] -- program [arguments]");
  run->footer(
      "The exit code is the program's; 126 or 127 if it cannot be started, 125 if files of "
      "flopinj\n"
      "are missing, 2 if the options are wrong. Read the trace with: flopreduce TRACE");
  run->prefix_command();
  add_run_options(*run, options);
  CLI::App* doctor =
      app.add_subcommand("doctor", "Tell what a profiled program would find on this machine");
  doctor->footer(
      "Exit codes: 0 all is well, 1 something is missing, 4 no permission to read the counters.");

  if (arguments.size() == 2 && arguments[0] == "--generate") {
    const std::vector<flopinj::manual::Command> commands = {
        describe(app, ""), describe(*run, "run"), describe(*doctor, "doctor")};
    return write_manual(commands, arguments[1]);
  }

  bool has_separator = false;
  std::vector<std::string> after = split_off_program(arguments, has_separator);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(),
                                       arguments.rend()));  // CLI11 takes them reversed
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return usage_error(error.what());
  }
  if (doctor->parsed()) {
    if (has_separator) return usage_error("doctor takes no program");
    return flopinj::doctor(flopinj::InstallTree::of_this_program());
  }

  options.program = run->remaining();
  if (!options.program.empty()) {
    if (options.program.front().starts_with("-")) {
      return usage_error("unknown option '" + options.program.front() + "'");
    }
    if (has_separator) options.program.emplace_back("--");  // the program's own
  }
  options.program.insert(options.program.end(), after.begin(), after.end());
  if (options.program.empty() && !options.print_env) return usage_error("no program to run");
  try {
    return flopinj::run(options, flopinj::InstallTree::of_this_program());
  } catch (const std::invalid_argument& error) {
    return usage_error(error.what());
  } catch (const std::exception& error) {
    std::cerr << "flopinj: " << error.what() << "\n";
    return flopinj::kExitCannotRun;
  }
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
