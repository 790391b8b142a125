#include <injector/process.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

namespace flopinj {
namespace {

// Launchers and the variable each gives a process's rank in, the most specific first.
constexpr const char* kRankVariables[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                          "SLURM_PROCID"};
constexpr size_t kMaxArguments = 1'024;

void read_rank(ProcessInfo& info) {
  for (const char* name : kRankVariables) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    int32_t rank = -1;
    const char* end = text + std::strlen(text);
    if (const auto [rest, error] = std::from_chars(text, end, rank);
        error == std::errc{} && rest == end && rank >= 0) {
      info.rank = rank;
      info.rank_source = name;
      return;
    }
  }
}

uint64_t clock_ns(clockid_t clock) noexcept {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

ProcessInfo describe_process() {
  ProcessInfo info;
  info.pid = static_cast<uint32_t>(getpid());
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) == 0) info.hostname = host;
  std::ifstream arguments("/proc/self/cmdline", std::ios::binary);
  for (std::string one;
       info.command_line.size() < kMaxArguments && std::getline(arguments, one, '\0');)
    info.command_line.push_back(one);
  read_rank(info);
  info.clock_realtime_ns = realtime_ns();
  info.clock_monotonic_ns = monotonic_ns();
  std::random_device random;
  info.session_id = (uint64_t{random()} << 32) ^ random() ^ info.clock_realtime_ns;
  return info;
}

std::string thread_name(uint32_t os_tid) {
  std::ifstream comm("/proc/self/task/" + std::to_string(os_tid) + "/comm");
  std::string name;
  std::getline(comm, name);
  return name;
}

uint64_t thread_cpu_ns() noexcept { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
uint64_t realtime_ns() noexcept { return clock_ns(CLOCK_REALTIME); }
uint64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

void prepare_helper_thread(const char* name) noexcept {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // the program's signals are for the program's threads
  prctl(PR_SET_NAME, name);
}

}  // namespace flopinj
