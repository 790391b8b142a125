// `flopinj attach` and `detach`: recordings in a process that runs already.
//
// Where the library is in the process it is asked by its socket. Else it is loaded into it first:
// the interpreter of Python 3.14 is asked to do so, or one of its threads that waits calls dlopen()
// and then the library's flopinj_listen() (remote_call.h). The other threads run on.
#include <collector/options/options.h>
#include <elf.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "commands.h"
#include "number_text.h"
#include "open_trace_words.h"
#include "permissions.h"
#include "process.h"
#include "running/control_client.h"
#include "running/live.h"
#include "running/process_image.h"
#include "running/remote_call.h"
#include "shell_word.h"

namespace flopinj {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// --- Whether it may be entered -------------------------------------------------------------------

const std::string kInstead = "; start it with flopinj run --dormant instead";

uint16_t machine_of(const fs::path& program) {
  std::ifstream file(program, std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  return file ? header.e_machine : uint16_t{EM_NONE};
}

// 0: as ever; 1: only the parent, or a user who may trace all; 2: only such a user; 3: no user.
int yama() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope;
}

// Of process 1 of a process's pid namespace: what all processes of its container have.
Seccomp seccomp_of_namespace(pid_t pid) {
  std::error_code error;
  const fs::path name = fs::read_symlink(proc_path(pid, "ns/pid"), error);
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const pid_t other = std::atoi(entry.path().filename().c_str());
    if (other == 0 || fs::read_symlink(entry.path() / "ns/pid", error) != name || error) continue;
    const std::string status = proc_text(other, "status");
    const std::string_view ids = value_of(status, "NSpid:");
    if (ids.substr(ids.find_last_of(" \t") + 1) == "1") return seccomp_of(status);
  }
  return {};
}

// A system call that a filter forbids may end the process.
bool is_filtered(pid_t pid, std::string_view status) {
  const Seccomp target = seccomp_of(status);
  return is_stricter(target, seccomp_of(proc_text(getpid(), "status"))) &&
         is_stricter(target, seccomp_of_namespace(pid));
}

void check_state(pid_t pid) {
  const std::string status = proc_text(pid, "status");
  if (status.empty()) refuse(pid, "has ended");
  const std::string_view tracer = value_of(status, "TracerPid:");
  if (!tracer.empty() && tracer != "0")
    refuse(pid, "is held by a debugger, process " + std::string(tracer) + ": end that first");
  switch (value_of(status, "State:").empty() ? '?' : value_of(status, "State:").front()) {
    case 'Z':
    case 'X':
      refuse(pid, "has ended: its first thread is no more");
    case 'T':
    case 't':
      refuse(pid,
             "is stopped: let it go on (kill -CONT " + std::to_string(pid) + "), then try again");
    default:
      break;
  }
}

void check(pid_t pid, const std::string& library) {
  check_state(pid);
  const std::vector<Mapping> mappings = mappings_of(pid);
  if (mappings.empty()) refuse(pid, "cannot be looked at: run flopinj as root");
  if (mapping_of(mappings, "libcuda.so") == nullptr)
    refuse(pid, "has not loaded CUDA's driver (libcuda.so): there is nothing to record" + kInstead);
  if (mapping_of(mappings, "libc.so.6") == nullptr && mapping_of(mappings, "libc-2") == nullptr)
    refuse(pid, "is linked statically, or with another C library than glibc" + kInstead);
  if (machine_of(proc_path(pid, "exe")) != machine_of("/proc/self/exe"))
    refuse(pid, "is of another architecture than this flopinj");
  refuse_other_network(pid);  // nobody could ask the library for anything
  if (!fs::exists(proc_path(pid, "root") + library))
    refuse(pid, "is in a container that does not see " + library +
                    ": install flopinj there, and attach from inside");
  const std::string status = proc_text(pid, "status");
  if (is_filtered(pid, status))
    refuse(pid,
           "has a filter of system calls (seccomp) that this flopinj has not, which may end it for "
           "loading a library" +
               kInstead);
  if (value_of(status, "x86_Thread_features:").find("shstk") != std::string_view::npos)
    refuse(pid, "has a shadow stack, so that it cannot be entered" + kInstead);
  constexpr uint64_t kCapSysPtrace = uint64_t{1} << 19;
  const uint64_t capabilities = effective_capabilities(proc_text(getpid(), "status"));
  const int scope = yama();
  if (scope == 3 || (scope != 0 && (capabilities & kCapSysPtrace) == 0))
    throw std::runtime_error(
        "this system lets nobody enter a running process (kernel.yama.ptrace_scope is " +
        std::to_string(scope) + ")" +
        (scope == 3 ? std::string(" until it is started again")
                    : std::string(": run flopinj as root, or sysctl kernel.yama.ptrace_scope=0")) +
        kInstead);
  if (proc_text(pid, "syscall").empty())
    refuse(pid,
           "may not be entered by you (the kernel refuses ptrace): run flopinj as root, in a "
           "container with the capability SYS_PTRACE" +
               kInstead);
}

// --- By the interpreter --------------------------------------------------------------------------

// The way into a process that CPython has since version 3.14 (PEP 768): sys.remote_exec asks the
// process's interpreter to run a script where it next may, between two instructions of Python. No
// thread is held. Only an interpreter of the same version knows how, so that the process's own
// program is run for it, as the process's user.

// The process's program, where it is a CPython that knows how.
std::string interpreter_of(pid_t pid) {
  constexpr int kFirst = 14;
  std::error_code error;
  const std::string program = fs::read_symlink(proc_path(pid, "exe"), error);
  std::smatch version;
  if (error || !std::regex_search(program, version, std::regex(R"(/python3\.(\d{1,3})t?$)")) ||
      std::stoi(version[1]) < kFirst)
    return "";
  for (const char* space : {"ns/mnt", "root"})
    if (fs::read_symlink(proc_path(pid, space), error) !=
        fs::read_symlink(proc_path(getpid(), space), error))
      return "";  // another file has that name here
  return program;
}

struct User {
  uid_t user = 0;
  gid_t group = 0;
};

// False: the process has several users, as a set-user-id program has.
bool user_of(std::string_view status, User& found) {
  const auto only = [&](std::string_view key, auto& id) {
    std::istringstream ids{std::string(value_of(status, key))};
    auto effective = id, saved = id;
    return static_cast<bool>(ids >> id >> effective >> saved) && id == effective && id == saved;
  };
  return only("Uid:", found.user) && only("Gid:", found.group);
}

// What a dynamic program, and Python in it, need to find their files.
std::vector<std::string> environment_of(pid_t pid) {
  std::vector<std::string> environment;
  std::istringstream all(proc_text(pid, "environ"));
  for (std::string variable; std::getline(all, variable, '\0');)
    if (variable.starts_with("LD_LIBRARY_PATH=") || variable.starts_with("PYTHONHOME="))
      environment.push_back(variable);
  return environment;
}

// As a text of Python.
std::string python_text(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) {
    if (letter == '\'' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + "'";
}

// A file that the process's user may read. The script removes it, whenever it runs.
std::string script_file(const User& user, const std::string& library) {
  std::string name = "/tmp/flopinj-XXXXXX";
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) return "";
  const std::string script = "import os\ntry:\n    os.unlink(" + python_text(name) +
                             ")\n    import ctypes\n    ctypes.CDLL(" + python_text(library) +
                             ").flopinj_listen()\nexcept Exception:\n    pass\n";
  const bool written =
      write(file, script.data(), script.size()) == static_cast<ssize_t>(script.size()) &&
      (geteuid() == user.user || fchown(file, user.user, user.group) == 0);
  close(file);
  if (written) return name;
  unlink(name.c_str());
  return "";
}

// Runs a program as that user, without a word. Whether it ended well in time.
bool run_as(const User& user, const std::vector<std::string>& command,
            const std::vector<std::string>& environment, Moment until) {
  constexpr auto kPause = 2ms;
  const pid_t child = fork();
  if (child == 0) {
    const bool is_other = geteuid() != user.user || getegid() != user.group;
    if (is_other && (setgroups(0, nullptr) != 0 || setgid(user.group) != 0 || setuid(user.user)))
      _exit(126);
    const int nothing = open("/dev/null", O_RDWR);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, stream);
    execve(command.front().c_str(), exec_words(command).data(), exec_words(environment).data());
    _exit(127);
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > until) kill(child, SIGKILL);
    std::this_thread::sleep_for(kPause);
  }
  return status == 0;
}

// Has the process's interpreter load the library and call its flopinj_listen(). False where it has
// not done so by `until`: it is no CPython, is older, does not take requests
// (PYTHON_DISABLE_REMOTE_DEBUG), is in a mount namespace of its own, or its first thread has run no
// Python since. In that last case it does both when it does, which is not too late: to load the
// library twice changes nothing.
bool enter_by_interpreter(pid_t pid, const std::string& library, Moment until) {
  constexpr auto kPause = 5ms;
  const std::string program = interpreter_of(pid);
  User user;
  if (program.empty() || !user_of(proc_text(pid, "status"), user)) return false;
  const std::string script = script_file(user, library);
  if (script.empty()) return false;
  if (!run_as(
          user,
          {program, "-S", "-P", "-c", "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])",
           std::to_string(pid), script},
          environment_of(pid), until)) {
    unlink(script.c_str());
    return false;
  }
  for (; Clock::now() < until; std::this_thread::sleep_for(kPause)) {
    struct stat found {};
    if (stat(script.c_str(), &found) == 0) continue;
    // It has begun to load the library, or failed: then there is another way.
    const std::vector<Mapping> mappings = mappings_of(pid);
    for (const Mapping& mapping : mappings)
      if (mapping.name == library && mapping.executable) return true;
  }
  return false;
}

// --- By one of its threads -----------------------------------------------------------------------

// dlopen() of the library, then its flopinj_listen().
class Calls {
 public:
  Calls(pid_t pid, const std::string& library) : pid_(pid), library_(library) {}

  std::optional<RemoteCall> next() {
    constexpr uint64_t kNow = 2;  // RTLD_NOW
    const std::vector<Mapping> mappings = mappings_of(pid_);
    switch (done_++) {
      case 0:
        // Of the C library from version 2.34 on, and of one of its own before.
        for (const char* file : {"libc.so.6", "libc-2", "libdl"})
          for (const std::string& library : libraries_of(mappings, file))
            if (const auto open = function_of(pid_, mappings, library, "dlopen"))
              return RemoteCall{open->begin, library_, 0, kNow};
        return std::nullopt;
      case 1:
        if (const auto listen = function_of(pid_, mappings, library_, "flopinj_listen"))
          return RemoteCall{listen->begin, "", 0, 0};
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }
  bool are_done() const { return done_ > 2; }

 private:
  pid_t pid_;
  std::string library_;
  int done_ = 0;
};

void enter(pid_t pid, const std::string& library, const std::function<bool()>& goes_on) {
  constexpr auto kAll = 20s;
  constexpr auto kOneThread = 500ms;
  constexpr auto kPause = 5ms;
  constexpr auto kCalls = 10s;
  constexpr auto kInterpreter = 3s;
  const auto give_up = Clock::now() + kAll;
  if (enter_by_interpreter(pid, library, Clock::now() + kInterpreter)) return;
  if (!can_call_remotely())
    refuse(pid, "was started without flopinj, and can be entered on x86-64 only" + kInstead);
  while (Clock::now() < give_up && goes_on()) {
    check_state(pid);
    for (const WaitingThread& thread : waiting_threads(pid)) {
      if (Clock::now() > give_up) break;
      if (is_filtered(pid, proc_text(pid, "task/" + std::to_string(thread.tid) + "/status")))
        continue;
      Calls calls(pid, library);
      const Moment now = Clock::now();
      switch (call_in_thread(pid, thread, std::min(give_up, now + kOneThread), now + kCalls,
                             [&calls] { return calls.next(); })) {
        case CallEnd::kDone:
          if (calls.are_done()) return;
          refuse(pid, "could not load " + library + kInstead);
        case CallEnd::kStopped:
          check_state(pid);
          break;
        case CallEnd::kEnded:
          refuse(pid, "ended while it was entered");
        case CallEnd::kLate:
          refuse(pid,
                 "takes long to load the library, which waits for another of its threads; try "
                 "again later");
        case CallEnd::kNotNow:
          break;
      }
    }
    std::this_thread::sleep_for(kPause);
  }
  refuse(pid,
         "was in no place within 20 s in which it can be entered safely (a thread that sleeps or "
         "waits, outside of signal handlers, with 256 KiB of stack): try again while it works" +
             kInstead);
}

// In a process and a session of its own that takes no signals: what is sent to this command, by its
// terminal or a user, stops nothing halfway. Returns the line that `work` throws, or nothing.
std::string apart(const std::function<void(const std::function<bool()>& goes_on)>& work) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return "no descriptors are left";
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    try {
      work([parent] { return getppid() == parent; });
    } catch (const std::exception& error) {
      const std::string line = error.what();
      _exit(write(ends[1], line.data(), line.size()) < 0 ? 2 : 1);
    }
    _exit(0);
  }
  close(ends[1]);
  const std::string line = read_to_end(ends[0]);
  const int status = child > 0 ? wait_for(child) : -1;
  return status != 0 && line.empty() ? "the process that was to enter it has been ended" : line;
}

// Throws std::runtime_error, with one line that says what to do, where it cannot be: no CUDA in the
// process, a static program, another architecture, the library not to be seen from it (another
// mount namespace), a filter of system calls, a debugger in it, ptrace forbidden (Yama, no
// capability), a stopped process, no safe place within 20 s. Then the process is as it was.
// docs/safety.md has each of these with its test.
void enter_process(pid_t pid, const std::string& library) {
  check(pid, library);
  const std::string line =
      apart([&](const std::function<bool()>& goes_on) { enter(pid, library, goes_on); });
  if (!line.empty()) throw std::runtime_error(line);
}

// The library makes its thread as it is loaded: it listens a moment later.
nlohmann::json ask_soon(pid_t pid, const std::vector<std::string>& request) {
  constexpr auto kPatience = 5s;
  constexpr auto kPause = 20ms;
  const auto give_up = Clock::now() + kPatience;
  for (;;) {
    try {
      return ask(pid, request);
    } catch (const NotListening&) {
      if (Clock::now() > give_up) throw;
      std::this_thread::sleep_for(kPause);
    }
  }
}

}  // namespace

int attach(const Options& options) {
  std::vector<std::string> request = {"start"};  // and settings: "FLOPINJ_LEVEL=tally"
  for (const auto& [name, value] : recording_variables(options))
    if (std::ranges::find(recording_options(), name, &RecordingOption::variable)->by_request)
      request.push_back(name + "=" + value);
  const pid_t pid = named_one(options, true);
  nlohmann::json answer;
  bool entered = false;
  try {
    answer = ask(pid, request);
  } catch (const NotListening&) {
    if (options.never_enter) throw;
    enter_process(pid, install_tree().library);
    entered = true;
    answer = ask_soon(pid, request);
  }
  std::cout << process_name(pid) << " is recorded to " << shown(answer, "output") << "\n";
  if (entered) std::cout << "It was started without flopinj: its NVTX ranges are not seen.\n";
  std::cout << "Let go of it:  flopinj detach " << pid << "\n" << std::flush;
  return kExitOk;
}

int detach(const Options& options) {
  const pid_t pid = named_one(options, false);
  const nlohmann::json stopped = ask(pid, {"stop"});
  const std::string output = shown(stopped, "output");
  const nlohmann::json last = ask(pid, {"status"});
  std::cout << process_name(pid) << " is let go of: ";
  if (stopped.value("closed", 1) != 0)
    std::cout << number_text(last.value("launches", uint64_t{0})) << " launches, "
              << size_text(last.value("trace_bytes", uint64_t{0})) << "\n";
  else
    std::cout << "the trace could not be written to the end: " << kLaterIsMissing << "\n";
  std::cout << "Read the trace:  flopinj report " << shell_quoted(output) << "\n" << std::flush;
  return kExitOk;
}

}  // namespace flopinj
