#include "running/enter_process.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "permissions.h"
#include "running/process_image.h"
#include "running/python_entry.h"
#include "running/remote_call.h"

namespace flopinj {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

[[noreturn]] void refuse(pid_t pid, const std::string& why) {
  throw std::runtime_error("process " + std::to_string(pid) + " " + why);
}

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

void check(pid_t pid, const InstallTree& tree) {
  check_state(pid);
  const std::vector<Mapping> mappings = mappings_of(pid);
  if (mappings.empty()) refuse(pid, "cannot be looked at: run flopinj as root");
  if (mapping_of(mappings, "libcuda.so") == nullptr)
    refuse(pid, "has not loaded CUDA's driver (libcuda.so): there is nothing to record" + kInstead);
  if (mapping_of(mappings, "libc.so.6") == nullptr && mapping_of(mappings, "libc-2") == nullptr)
    refuse(pid, "is linked statically, or with another C library than glibc" + kInstead);
  if (machine_of(proc_path(pid, "exe")) != machine_of("/proc/self/exe"))
    refuse(pid, "is of another architecture than this flopinj");
  if (!fs::exists(proc_path(pid, "root") + tree.library.string()))
    refuse(pid, "is in a container that does not see " + tree.library.string() +
                    ": install flopinj there, and attach from inside");
  const std::string status = proc_text(pid, "status");
  if (is_filtered(pid, status))
    refuse(pid,
           "has a filter of system calls (seccomp) that this flopinj has not, which may end it "
           "for loading a library" +
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

// dlopen() of the library, then its flopinj_listen().
class Calls {
 public:
  Calls(pid_t pid, const InstallTree& tree) : pid_(pid), library_(tree.library.string()) {}

  std::optional<RemoteCall> next() {
    constexpr uint64_t kNow = 2;  // RTLD_NOW
    const std::vector<Mapping> mappings = mappings_of(pid_);
    switch (done_++) {
      case 0:
        // Of the C library from version 2.34 on, and of one of its own before.
        for (const char* file : {"libc.so.6", "libc-2", "libdl"})
          if (const Mapping* const mapping = mapping_of(mappings, file))
            if (const auto open = function_of(pid_, mappings, mapping->name, "dlopen"))
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

void enter(pid_t pid, const InstallTree& tree, const std::function<bool()>& goes_on) {
  constexpr auto kAll = 20s;
  constexpr auto kOneThread = 500ms;
  constexpr auto kPause = 5ms;
  constexpr auto kCalls = 10s;
  constexpr auto kInterpreter = 3s;
  const auto give_up = Clock::now() + kAll;
  if (enter_by_interpreter(pid, tree.library.string(), Clock::now() + kInterpreter)) return;
  if (!can_call_remotely())
    refuse(pid, "was started without flopinj, and can be entered on x86-64 only" + kInstead);
  while (Clock::now() < give_up && goes_on()) {
    check_state(pid);
    for (const WaitingThread& thread : waiting_threads(pid)) {
      if (is_filtered(pid, proc_text(pid, "task/" + std::to_string(thread.tid) + "/status")))
        continue;
      Calls calls(pid, tree);
      const Moment now = Clock::now();
      switch (call_in_thread(pid, thread, std::min(give_up, now + kOneThread), now + kCalls,
                             [&calls] { return calls.next(); })) {
        case CallEnd::kDone:
          if (calls.are_done()) return;
          refuse(pid, "could not load " + tree.library.string() + kInstead);
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
  std::string line;
  std::array<char, 4'096> bytes;
  for (ssize_t count = 0; child > 0 && (count = read(ends[0], bytes.data(), bytes.size())) > 0;)
    line.append(bytes.data(), static_cast<size_t>(count));
  close(ends[0]);
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  return status != 0 && line.empty() ? "the process that was to enter it has been ended" : line;
}

}  // namespace

void enter_process(pid_t pid, const InstallTree& tree) {
  check(pid, tree);
  const std::string line =
      apart([&](const std::function<bool()>& goes_on) { enter(pid, tree, goes_on); });
  if (!line.empty()) throw std::runtime_error(line);
}

}  // namespace flopinj
