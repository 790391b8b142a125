// What the system allows a process: reading the GPU's performance counters, and system calls.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace flopinj {

enum class CounterAccess {
  kOpen,        // every user may
  kPrivileged,  // only some may, and this process is one of them
  kClosed,      // this process may not
  kUnknown      // the driver does not say: no NVIDIA driver, or its parameters cannot be read
};

// `params` is the text of /proc/driver/nvidia/params, whose line RmProfilingAdminOnly holds the
// driver option NVreg_RestrictProfilingToAdminUsers. `capabilities` is the effective set, CapEff of
// /proc/self/status: CAP_SYS_ADMIN is enough, and CAP_PERFMON from driver release 565 on.
CounterAccess counter_access(std::string_view params, uint64_t capabilities,
                             unsigned driver_release);

// The first number of the driver's version (580 for 580.65.06) in the text of
// /proc/driver/nvidia/version; 0 if there is none.
unsigned driver_release(std::string_view version_text);

// The filters of system calls that a process has, from the text of its /proc/PID/status.
struct Seccomp {
  unsigned mode = 0;  // 0: none, 1: hardly any system call is allowed, 2: as the filters say
  std::optional<unsigned> filters;  // Linux before 5.9 does not say how many
};
Seccomp seccomp_of(std::string_view status_text);

// Whether `one` has a filter that `other` lacks, as far as their numbers say: filters are inherited
// and never removed, so that two processes of one container have the same first ones.
bool is_stricter(const Seccomp& one, const Seccomp& other);

// The effective capability set in the text of /proc/self/status; 0 if there is none.
uint64_t effective_capabilities(std::string_view status_text);

}  // namespace flopinj
