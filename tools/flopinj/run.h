// `flopinj run`: starts a program with the profiler in its environment.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "environment.h"
#include "install_tree.h"

namespace flopinj {

struct RunOptions {
  // By variable (recording_options()): what was given for it; nothing: the library's default.
  std::map<std::string, std::vector<std::string>> given;
  bool preload = false;
  bool torch = false;
  bool simulate = false;
  std::optional<unsigned> sim_devices;
  std::string sim_chip;
  bool summary = false;
  bool print_env = false;
  std::vector<std::string> program;  // and its arguments
};

// The trace could not be written: what the user must mend before the program starts.
struct CannotRecord : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The library's variables that the options ask for. Relative paths are taken against `folder`.
// Throws std::invalid_argument for an error that the user must mend.
std::vector<std::pair<std::string, std::string>> recording_variables(
    const RunOptions& options, const std::filesystem::path& folder);
// The environment that the options ask for. Relative paths are taken against `folder`. Throws
// std::invalid_argument for what the user must mend.
Environment injection_environment(const RunOptions& options, const InstallTree& tree,
                                  const std::filesystem::path& folder);

// Becomes the program, so that process id, signals and exit code are its own. Returns an exit code
// of ours if it cannot be started or if only the environment was to be printed. Throws CannotRecord
// before anything is started.
int run(const RunOptions& options, const InstallTree& tree);

}  // namespace flopinj
