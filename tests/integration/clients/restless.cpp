// Preloaded into a program: threads that do what RESTLESS names, again and again, separated by
// commas. None of it changes the program's results; what goes wrong ends it with code 99.
//   forks       children that use NVTX and end, while another thread uses it, too
//   alternate   a signal handler that sleeps on an alternate stack of 8 KiB
//   libraries   a library with NVTX of its own that is loaded and closed
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "effort.h"

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "restless: %s\n", what);
  _exit(99);
}

void rest() {
  const timespec time{0, 2'000'000};
  nanosleep(&time, nullptr);
}

std::atomic<nvtxDomainHandle_t> g_domain{nullptr};

void use_nvtx(const char* text) {
  if (const nvtxDomainHandle_t domain = g_domain) nvtxDomainRegisterStringA(domain, text);
  nvtxRangePushA(text);
  nvtxRangePop();
}

// Other threads may be in malloc: the child makes its text on the stack.
void fork_once() {
  constexpr int kCode = 7;
  constexpr int kMostWaits = 30'000;  // a minute
  static int number = 0;
  if (number == 0) g_domain = nvtxDomainCreateA("restless");
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "child %d", ++number);
  const pid_t child = fork();
  if (child == 0) {
    if (!flopinj::test::kSanitized) use_nvtx(text.data());  // whose allocator may be locked
    _exit(kCode);
  }
  int status = 0;
  for (int i = 0; child > 0; ++i) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return;  // the program waits for children, too
    if (i == kMostWaits) fail("a child hangs");
    rest();
  }
  if (child > 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != kCode))
    fail("a child ended otherwise");
}

// Known bytes on both sides of the stack. The handler is left by itself, after a while.
void handle_once() {
  constexpr size_t kAround = size_t{512} << 10, kSize = size_t{8} << 10;
  static std::array<char, 2 * kAround + kSize> bytes;
  static bool first = true;
  if (first) {
    first = false;
    bytes.fill(0x5a);
    stack_t stack{};
    stack.ss_sp = bytes.data() + kAround;
    stack.ss_size = kSize;
    sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_handler = [](int) {
      for (int i = 0; i < 50; ++i) rest();
    };
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGURG, &action, nullptr);
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGURG);
    pthread_sigmask(SIG_UNBLOCK, &taken, nullptr);
  }
  pthread_kill(pthread_self(), SIGURG);
  for (size_t i = 0; i < kAround; ++i)
    if (bytes[i] != 0x5a || bytes[kAround + kSize + i] != 0x5a) fail("bytes have changed");
}

// The library beside this one.
void load_once() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&rest), &self) == 0) fail("no path");
  const std::string path = self.dli_fname;
  void* const library =
      dlopen((path.substr(0, path.rfind('/')) + "/nvtx_copy.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  if (void* const use = dlsym(library, "nvtx_copy_ranges"); use != nullptr)
    reinterpret_cast<void (*)()>(use)();
  rest();
  dlclose(library);
}

using Work = void (*)();

void start(Work work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  pthread_create(
      &thread, nullptr,
      [](void* given) -> void* {
        for (;;) {
          reinterpret_cast<Work>(given)();
          rest();
        }
      },
      reinterpret_cast<void*>(work));
  pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

__attribute__((constructor)) void begin() {
  const char* const wanted = std::getenv("RESTLESS");
  const auto wants = [&](const char* name) {
    return wanted != nullptr && std::strstr(wanted, name) != nullptr;
  };
  if (wants("forks")) start(fork_once), start([] { use_nvtx("beside"); });
  if (wants("alternate")) start(handle_once);
  if (wants("libraries")) start(load_once);
}

}  // namespace
