// Who may read the GPU's performance counters.
#pragma once
#include <cstdint>
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

// The effective capability set in the text of /proc/self/status; 0 if there is none.
uint64_t effective_capabilities(std::string_view status_text);

}  // namespace flopinj
