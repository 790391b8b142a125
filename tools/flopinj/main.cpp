#include <collector/options/options.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "doctor.h"
#include "exit_codes.h"
#include "install_tree.h"
#include "manual/describe.h"
#include "run.h"
#include "simgpu/driver/chip.h"

namespace {

using flopinj::RunOptions;
using flopinj::manual::describe;

// One option for each setting of the library.
void add_recording_options(CLI::App& run, RunOptions& options) {
  for (const flopinj::RecordingOption& setting : flopinj::recording_options()) {
    const std::string name(setting.option), help(setting.help);
    if (name.empty()) continue;
    std::vector<std::string>& given = options.given[std::string(setting.variable)];
    if (setting.value.empty()) {
      run.add_flag_callback(
          name, [&given] { given = {"1"}; }, help);
      continue;
    }
    CLI::Option* const option = run.add_option(name, given, help)->allow_extra_args(false);
    if (!setting.many) option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    if (!setting.choices.empty()) {
      option->check(
          CLI::IsMember(std::vector<std::string>(setting.choices.begin(), setting.choices.end())));
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

void add_run_options(CLI::App& run, RunOptions& options) {
  add_recording_options(run, options);
  run.add_flag("--preload", options.preload,
               "Also preload the library, for programs that clear the injection variables");
  CLI::Option* simulate =
      run.add_flag("--simulate", options.simulate, "Run on a simulated GPU, on the CPU");
  run.add_option("--sim-devices", options.sim_devices, "Number of simulated GPUs")
      ->check(CLI::Range(0u, 16u))
      ->needs(simulate);
  std::vector<std::string> chips;
  for (const simgpu::Chip& chip : simgpu::chips()) chips.emplace_back(chip.name);
  run.add_option("--sim-chip", options.sim_chip, "Chip to simulate (GH100)")
      ->check(CLI::IsMember(chips))
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

// README's table of options and variables.
int write_option_table() {
  std::cout << "| option of `flopinj run` | variable | |\n|---|---|---|\n";
  for (const flopinj::RecordingOption& setting : flopinj::recording_options()) {
    std::string names(setting.option);
    if (names.empty()) continue;
    if (const size_t comma = names.find(','); comma != names.npos) names.replace(comma, 1, "`, `");
    std::cout << "| `" << names << "` | `" << setting.variable << "` | " << setting.help << " |\n";
  }
  return std::cout.flush() ? 0 : flopinj::kExitUsage;
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
      "are missing, 2 if the options are wrong or the trace could not be written there.");
  run->prefix_command();
  add_run_options(*run, options);
  CLI::App* doctor =
      app.add_subcommand("doctor", "Tell what a profiled program would find on this machine");
  doctor->footer(
      "Exit codes: 0 all is well, 1 something is missing, 4 no permission to read the counters.");

  if (arguments.size() == 2 && arguments[0] == "--generate") {
    if (arguments[1] == "options") return write_option_table();
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
  } catch (const flopinj::CannotRecord& error) {
    std::cerr << "flopinj: " << error.what() << "\n";
    return flopinj::kExitUsage;
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
