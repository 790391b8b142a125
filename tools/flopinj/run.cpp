#include "run.h"

#include <collector/options/options.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string_view>

#include "condense.h"
#include "exit_codes.h"
#include "output.h"
#include "run_notice.h"
#include "watch.h"

namespace flopinj {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCudaInjection = "CUDA_INJECTION64_PATH";
constexpr const char* kNvtxInjection = "NVTX_INJECTION64_PATH";
constexpr std::string_view kOutput = "FLOPINJ_OUTPUT", kCupti = "FLOPINJ_CUPTI",
                           kQuiet = "FLOPINJ_QUIET", kForce = "FLOPINJ_FORCE",
                           kMode = "FLOPINJ_MODE", kRun = "FLOPINJ_RUN";

// The readers of these variables split them at such characters and know no quoting.
void require_plain(const fs::path& path, const char* separators, const char* option) {
  if (path.string().find_first_of(separators) == std::string::npos) return;
  throw std::invalid_argument(
      std::string(option) + " cannot be used from '" + path.string() +
      "': lists of paths are split at spaces and colons; install flopinj in another folder");
}

void require_file(const fs::path& path, const char* what) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return;
  throw std::runtime_error(path.string() + " is missing, " + what +
                           " needs it; build or install all of flopinj");
}

// Another tool's injection is replaced, as the variables hold one library only. A line says so.
void warn_if_taken(const char* variable, const fs::path& ours) {
  const char* other = std::getenv(variable);
  if (other == nullptr || *other == '\0') return;
  std::error_code error;
  if (fs::weakly_canonical(other, error) == ours) return;
  std::cerr << "flopinj: " << variable << " was " << other << "; replaced for this run\n";
}

// As the library will read it: what was given, else what the environment has.
std::string setting(const RunOptions& options, std::string_view variable) {
  std::string value;
  if (const auto given = options.given.find(std::string(variable)); given != options.given.end())
    for (const std::string& one : given->second) value += (value.empty() ? "" : ",") + one;
  if (!value.empty()) return value;
  const char* const inherited = std::getenv(std::string(variable).c_str());
  return inherited != nullptr ? inherited : "";
}

std::string output_name(const RunOptions& options, const fs::path& folder) {
  std::string name = setting(options, kOutput);
  if (name.empty()) name = Settings{}.output;
  if (const std::string problem = output_name_problem(name); !problem.empty())
    throw std::invalid_argument(problem);
  return absolute_output_name(name, folder);  // whatever folder the program changes to
}

bool quiet(const RunOptions& options) { return setting(options, kQuiet) == "1"; }

// What would leave the program unprofiled is found now, and not after hours. Returns the socket of
// the run's watcher, empty where there is none.
std::string prepare_recording(const RunOptions& options, const std::string& output,
                              const RunSocket* listener) {
  if (setting(options, kMode) == "off") {
    if (!quiet(options)) std::cerr << "flopinj: mode off: nothing is recorded\n";
    return {};
  }
  const bool force = setting(options, kForce) == "1";
  if (const std::string problem = output_problem(output, force); !problem.empty())
    throw CannotRecord(problem + ". Nothing was started");
  RunToken token;
  if (force) token.started_ns = output_clock_ns(output);
  if (listener != nullptr)
    token.socket = listener->name();
  else if (!quiet(options))
    token.socket = start_watcher();
  setenv(kRun.data(), token.text().c_str(), 1);
  return token.socket;
}

int exec_program(const std::vector<std::string>& program, const std::string& watcher) {
  std::vector<char*> arguments;
  for (const std::string& argument : program) {
    arguments.push_back(const_cast<char*>(argument.c_str()));  // exec does not write to them
  }
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  if (!watcher.empty()) send_run_notice(watcher, {RunEvent::kRefused, {}});
  std::cerr << "flopinj: cannot run '" << program.front() << "': ";
  if (error == ENOENT) {
    std::cerr << "no such program, or its interpreter is missing\n";
    return kExitNotFound;
  }
  std::cerr << std::strerror(error) << "\n";
  return kExitNotExecutable;
}

// Its summaries say what was recorded, so that the library need not.
int run_with_summary(const RunOptions& options, const InstallTree& tree, Environment environment) {
  const std::string output = output_name(options, fs::current_path());
  std::error_code error;
  if (output == "-" || output.starts_with("unix:") || fs::is_fifo(output, error) ||
      fs::is_character_file(output, error))
    throw std::invalid_argument("--summary needs traces in files, and -o " + output + " is none");
  require_file(tree.reducer, "--summary");
  RunSocket socket;
  if (socket.name().empty())
    throw std::runtime_error("no socket can be opened, which --summary needs");
  const std::string name = prepare_recording(options, output, &socket);
  environment.set(std::string(kQuiet), "1");
  const auto become_program = [&] {
    environment.apply();
    return exec_program(options.program, name);
  };
  return run_and_condense(std::move(socket), become_program,
                          {tree.reducer, setting(options, kForce) == "1", quiet(options)});
}

}  // namespace

std::vector<std::pair<std::string, std::string>> recording_variables(const RunOptions& options,
                                                                     const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const RecordingOption& option : recording_options()) {
    const auto given = options.given.find(std::string(option.variable));
    std::string value = given != options.given.end() ? setting(options, option.variable) : "";
    if (option.variable == kOutput) {
      value = output_name(options, folder);
    } else if (option.variable == kQuiet) {
      if (value.empty() && !quiet(options)) value = "0";
    } else if (option.variable == kCupti && value.find('/') != value.npos) {
      value = (folder / value).string();  // else a name for the dynamic loader
    }
    if (!value.empty()) variables.emplace_back(option.variable, value);
  }
  return variables;
}

Environment injection_environment(const RunOptions& options, const InstallTree& tree,
                                  const fs::path& folder) {
  require_file(tree.library, "run");
  Environment environment;
  environment.set(kCudaInjection, tree.library);
  environment.set(kNvtxInjection, tree.library);
  for (auto& [name, value] : recording_variables(options, folder)) environment.set(name, value);
  if (options.preload) {
    require_plain(tree.library, " :", "--preload");
    environment.prepend("LD_PRELOAD", tree.library);
  }
  if (options.torch) {
    require_plain(tree.torch, ":", "--torch");
    require_file(tree.torch / "sitecustomize.py", "--torch");
    environment.prepend("PYTHONPATH", tree.torch);
  }
  if (options.simulate) {
    require_plain(tree.simgpu, ":;", "--simulate");
    require_file(tree.simgpu / "libcuda.so.1", "--simulate");
    environment.prepend("LD_LIBRARY_PATH", tree.simgpu);
  }
  if (options.sim_devices) environment.set("SIMGPU_DEVICES", std::to_string(*options.sim_devices));
  if (!options.sim_chip.empty()) environment.set("SIMGPU_CHIP", options.sim_chip);
  return environment;
}

int run(const RunOptions& options, const InstallTree& tree) {
  const Environment environment = injection_environment(options, tree, fs::current_path());
  if (options.print_env) {
    std::cout << environment.shell_exports() << std::flush;
    return kExitOk;
  }
  warn_if_taken(kCudaInjection, tree.library);
  warn_if_taken(kNvtxInjection, tree.library);
  if (options.summary && setting(options, kMode) != "off")
    return run_with_summary(options, tree, environment);
  environment.apply();
  const std::string watcher =
      prepare_recording(options, output_name(options, fs::current_path()), nullptr);
  return exec_program(options.program, watcher);
}

}  // namespace flopinj
