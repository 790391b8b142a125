// The commands of flopinj. Each returns an exit code; those for running processes throw
// std::runtime_error with one line that says what to do.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace flopinj {

// Of flopinj itself. `run` becomes the program, so that its exit code is the program's, or as in a
// shell if it cannot start.
inline constexpr int kExitOk = 0;
inline constexpr int kExitCheckFailed = 1;  // doctor: something is missing, or counts wrong
inline constexpr int kExitUsage = 2;
inline constexpr int kExitPermission = 4;   // doctor: the counters are closed to this user
inline constexpr int kExitCannotRun = 125;  // run: flopinj itself is not whole
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

// What was given to one of the commands.
struct Options {
  // Of run and attach, by the library's variable (recording_options()); nothing: its default.
  std::map<std::string, std::vector<std::string>> given;
  // Of run.
  bool preload = false, torch = false, simulate = false, summary = false, print_env = false;
  std::string page;  // of the traces' report; empty: none
  std::optional<unsigned> sim_devices;
  std::string sim_chip;
  std::vector<std::string> program;  // and its arguments
  std::vector<std::string> typed;    // the options before it, for lines that are suggested
  // Of those for running processes; only metrics takes several.
  std::vector<pid_t> processes;
  bool never_enter = false;  // not a process that the library is not in
  bool json = false, once = false;
  bool count = false;  // of doctor
  double every_s = 0;
  std::string file;     // written whole and renamed, again and again; empty: to stdout, once
  unsigned port = 0;    // for HTTP; 0: none
  std::string address;  // on which it listens; empty: 127.0.0.1, for this machine's own requests
  // Of import, with `file`.
  std::vector<std::string> recordings;
  std::string gpu, counters;
  bool force = false;

  pid_t pid() const { return processes.front(); }
};

// Our own files, found from the running program: a build folder and an installed tree have the
// same shape, and may be anywhere. The files themselves may be missing.
//
// Absolute and free of symbolic links: CUDA and NVTX must be given the same path, or the library
// is loaded twice.
struct InstallTree {
  std::filesystem::path library;   // lib/libflopinj.so, the path to inject
  std::filesystem::path reducer;   // bin/flopreduce
  std::filesystem::path importer;  // bin/flopimport
  std::filesystem::path simgpu;    // folder of the simulated libcuda.so.1 and libcupti.so.13
  std::filesystem::path torch;     // folder for PYTHONPATH
  std::filesystem::path known_kernels;
  std::filesystem::path trainer;  // a program to try flopinj with
};
// Throws std::runtime_error if /proc/self/exe cannot be read.
const InstallTree& install_tree();

// The trace could not be written: what the user must mend before the program starts.
struct CannotRecord : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The library's variables that the options ask for, a relative path made absolute. Throws
// std::invalid_argument for an error that the user must mend.
std::vector<std::pair<std::string, std::string>> recording_variables(const Options&);
// Names of variables in the environment that look like flopinj's and are none.
std::vector<std::string> unknown_variables();

// Becomes the program, so that process id, signals and exit code are its own. Returns an exit code
// of ours if it cannot be started or if only the environment was to be printed. Throws CannotRecord
// before anything is started, std::invalid_argument as above.
int run(const Options&);

// Becomes flopimport, which makes traces of what other profilers have recorded.
int import(const Options&);

// Trains the trainer's GPT on a simulated GPU, prints its report and writes it as a page, in the
// current folder. The exit code of the first step that fails.
int demo(const Options&);

// Says what a profiled program would find on this machine, one line for each check. Loads the
// driver library into this process and initialises it, without injection.
int doctor(const Options&);
// The same of the simulated GPU: becomes a doctor that finds it. Returns only where that fails.
int doctor_of_simulator(const Options&);

int attach(const Options&);
int detach(const Options&);
int status(const Options&);
// Until the process has ended, or a signal comes.
int top(const Options&);
// With a file or a port until all processes have ended, or a signal comes.
int metrics(const Options&);

}  // namespace flopinj
