#include "running/enter_process.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "permissions.h"
#include "running/child_process.h"

namespace flopinj {
namespace {

namespace fs = std::filesystem;

constexpr int kPatienceMs = 20'000;

// Entries of functions that a thread calls with no lock of malloc or of the loader held.
constexpr std::array kSafeCalls{"cuLaunchKernel",
                                "cuLaunchKernel_ptsz",
                                "cuLaunchKernelEx",
                                "cuLaunchKernelEx_ptsz",
                                "cuGraphLaunch",
                                "cuGraphLaunch_ptsz",
                                "cuCtxSynchronize",
                                "cuStreamSynchronize",
                                "cuEventQuery",
                                "cuMemcpyAsync",
                                "clock_nanosleep",
                                "nanosleep",
                                "poll",
                                "epoll_wait",
                                "select",
                                "pthread_cond_wait",
                                "pthread_cond_timedwait"};

fs::path proc(pid_t pid, const char* name) {
  return fs::path("/proc") / std::to_string(pid) / name;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

uint16_t machine_of(const fs::path& program) {
  std::ifstream file(program, std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  return file ? header.e_machine : uint16_t{EM_NONE};
}

bool has_gdb() {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((fs::path(folder) / "gdb").c_str(), X_OK) == 0) return true;
  return false;
}

// 0: as ever; 1: only the parent, or a user who may trace all; 2: only such a user; 3: nobody.
int yama() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope;
}

void check(pid_t pid, const InstallTree& tree) {
  const std::string process = "process " + std::to_string(pid);
  const std::string instead = "; start it with flopinj run --dormant instead";
  const std::string maps = text_of(proc(pid, "maps"));
  if (maps.empty()) throw std::runtime_error(process + " cannot be looked at: run flopinj as root");
  if (maps.find("/libcuda.so") == maps.npos)
    throw std::runtime_error(process +
                             " has not loaded CUDA's driver (libcuda.so): there is "
                             "nothing to record" +
                             instead);
  if (maps.find("/libc.so.6") == maps.npos && maps.find("/libc-") == maps.npos)
    throw std::runtime_error(process +
                             " is linked statically, or with another C library than "
                             "glibc" +
                             instead);
  if (machine_of(proc(pid, "exe")) != machine_of("/proc/self/exe"))
    throw std::runtime_error(process + " is of another architecture than this flopinj");
  if (!fs::exists(proc(pid, "root").string() + tree.library.string()))
    throw std::runtime_error(process + " is in a container that does not see " +
                             tree.library.string() +
                             ": install flopinj there, and attach from "
                             "inside");
  constexpr uint64_t kCapSysPtrace = uint64_t{1} << 19;
  const uint64_t capabilities = effective_capabilities(text_of("/proc/self/status"));
  const int scope = yama();
  if (scope == 3 || (scope != 0 && (capabilities & kCapSysPtrace) == 0))
    throw std::runtime_error(
        "this system lets nobody enter a running process (kernel.yama.ptrace_scope is " +
        std::to_string(scope) + ")" +
        (scope == 3 ? std::string(" until it is started again")
                    : std::string(": run flopinj as root, or sysctl kernel.yama.ptrace_scope=0")) +
        instead);
  if (!has_gdb())
    throw std::runtime_error(
        "gdb is needed to enter a process that was started without flopinj: "
        "install it" +
        instead);
}

// What gdb is to do. A breakpoint's condition notes that it was met: the process may stop for
// another reason, such as the end of our patience.
std::string gdb_script(pid_t pid, const InstallTree& tree) {
  const std::string library = tree.library.string();
  std::string script =
      "set pagination off\nset confirm off\nset auto-load off\nset unwindonsignal on\n"
      "set breakpoint pending on\n"
      "set auto-solib-add off\n"  // the symbols of PyTorch take a minute to read
      "attach " +
      std::to_string(pid) + "\n";
  for (const char* name : {"libc.so", "libcuda.so", "libpthread", "libdl"})
    script += std::string("sharedlibrary ") + name + "\n";
  script +=
      "handle all nostop noprint pass\nhandle SIGINT SIGTRAP stop nopass\n"
      "set $safe = 0\n";
  for (const char* call : kSafeCalls) script += std::string("tbreak ") + call + " if ($safe = 1)\n";
  return script +
         "continue\ndelete\nif $safe\n"
         "print ((void* (*)(const char*, int))dlopen)(\"" +
         library +
         "\", 2)\n"
         "sharedlibrary libflopinj\n"
         "print ((int (*)(void))flopinj_listen)()\n"
         "printf \"flopinj: entered\\n\"\n"
         "else\nprintf \"flopinj: no safe moment\\n\"\nend\ndetach\n";
}

// A file without a name, which gdb opens by its number.
int script_file(const std::string& script) {
  const auto fd = static_cast<int>(syscall(SYS_memfd_create, "flopinj-gdb", 0U));
  if (fd < 0 || write(fd, script.data(), script.size()) != static_cast<ssize_t>(script.size()) ||
      lseek(fd, 0, SEEK_SET) != 0)
    throw std::runtime_error("no memory for gdb's script");
  return fd;
}

struct Ran {
  bool in_time = true;
  std::string output;
};

// SIGINT lets gdb stop the process, go on with its commands and so take its breakpoints out; it is
// never killed, since these would then stay in the process.
Ran run_gdb(const std::string& text) {
  const int script = script_file(text);
  unsetenv("DEBUGINFOD_URLS");  // it would ask the network for symbols
  Ran ran;
  ChildOptions options;
  options.with_stderr = true;
  options.patience_ms = kPatienceMs;
  options.is_silent = [&ran](int gdb) {
    ran.in_time = false;
    kill(gdb, SIGINT);
  };
  ran.output =
      output_of({"gdb", "-nx", "-nh", "-batch", "-x", "/dev/fd/" + std::to_string(script)}, options)
          .text;
  close(script);
  return ran;
}

}  // namespace

void enter_process(pid_t pid, const InstallTree& tree) {
  check(pid, tree);
  const Ran ran = run_gdb(gdb_script(pid, tree));
  if (ran.output.find("flopinj: entered") != ran.output.npos) return;
  const std::string process = "process " + std::to_string(pid);
  if (!ran.in_time)
    throw std::runtime_error(process +
                             " made no call within 20 s in which it can be entered "
                             "safely (a launch, a sleep, a wait): try again while it works");
  throw std::runtime_error("gdb could not enter " + process + " (another debugger may be in it): " +
                           ran.output.substr(0, ran.output.find('\n')));
}

}  // namespace flopinj
