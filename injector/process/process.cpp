#include <injector/process/process.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <random>

#include "job_launchers.h"

namespace flopinj {
namespace {

// Variables in which schedulers name the job, those around a whole job first: Slurm, PBS, LSF, Flux
// and torchrun, which says "none" where its user gave no --rdzv-id.
constexpr const char* kJobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID",
                                 "TORCHELASTIC_RUN_ID"};
// Variables that have a label of the job, the first one that is set. Slurm, PBS and LSF set their
// own, the operator KubeRay its cluster's name; the names of Kubernetes' downward API are a habit,
// and so is the name under which each is asked for.
struct EnvironmentLabel {
  const char* name;
  std::initializer_list<const char*> variables;
};
constexpr EnvironmentLabel kLabels[] = {
    {"cluster", {"SLURM_CLUSTER_NAME", "RAY_CLUSTER_NAME"}},
    {"user", {"SLURM_JOB_USER", "PBS_O_LOGNAME"}},
    {"account", {"SLURM_JOB_ACCOUNT", "LSB_PROJECT_NAME"}},
    {"partition", {"SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE"}},
    {"job_name", {"SLURM_JOB_NAME", "PBS_JOBNAME", "LSB_JOBNAME"}},
    {"namespace", {"POD_NAMESPACE"}},
    {"pod", {"POD_NAME"}}};
constexpr size_t kMaxArguments = 1'024;

// The number in an environment variable; -1 where it holds none.
int32_t number_in(const char* variable) {
  const char* text = variable != nullptr ? std::getenv(variable) : nullptr;
  if (text == nullptr) return -1;
  int32_t number = -1;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, number);
  return error == std::errc{} && rest == end && number >= 0 ? number : -1;
}

void read_rank(ProcessInfo& info) {
  for (const Launcher& launcher : kLaunchers) {
    const int32_t rank = number_in(launcher.rank);
    if (rank < 0) continue;
    info.rank = rank;
    info.rank_source = launcher.rank;
    const int32_t size = number_in(launcher.size);
    if (size > rank) info.world_size = static_cast<uint32_t>(size);
    return;
  }
}

void read_job(ProcessInfo& info) {
  for (const char* variable : kJobs) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0' || std::strcmp(text, "none") == 0) continue;
    info.job_id = text;
    info.job_id_source = variable;
    return;
  }
}

void read_labels(ProcessInfo& info) {
  for (const EnvironmentLabel& label : kLabels)
    for (const char* variable : label.variables) {
      const char* text = std::getenv(variable);
      if (text == nullptr || *text == '\0') continue;
      info.labels.push_back({label.name, text, variable});
      break;
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
  read_job(info);
  read_labels(info);
  info.requeues = static_cast<uint32_t>(std::max(0, number_in("SLURM_RESTART_COUNT")));
  info.restarts = static_cast<uint32_t>(std::max(0, number_in("TORCHELASTIC_RESTART_COUNT")));
  info.clock_realtime_ns = realtime_ns();
  info.clock_monotonic_ns = monotonic_ns();
  std::random_device random;
  info.session_id = (uint64_t{random()} << 32) ^ random() ^ info.clock_realtime_ns;
  return info;
}

std::string thread_name(uint32_t os_tid) {
  if (os_tid == static_cast<uint32_t>(syscall(SYS_gettid))) {
    char own[17] = {};
    return prctl(PR_GET_NAME, own) == 0 ? own : "";
  }
  std::ifstream comm("/proc/self/task/" + std::to_string(os_tid) + "/comm");
  std::string name;
  std::getline(comm, name);
  return name;
}

uint64_t thread_cpu_ns() noexcept { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
uint64_t realtime_ns() noexcept { return clock_ns(CLOCK_REALTIME); }
uint64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

}  // namespace flopinj
