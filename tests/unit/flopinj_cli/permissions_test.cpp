#include "permissions.h"

#include "catch.h"

using flopinj::counter_access;
using flopinj::CounterAccess;
using flopinj::driver_release;
using flopinj::effective_capabilities;
using flopinj::is_stricter;
using flopinj::Seccomp;
using flopinj::seccomp_of;

namespace {

constexpr const char* kRestricted =
    "ResmanDebugLevel: 4294967295\nRmLogonRC: 1\nRmProfilingAdminOnly: "
    "1\nPreserveVideoMemoryAllocations: 0\n";
constexpr const char* kOpen = "RmLogonRC: 1\nRmProfilingAdminOnly: 0\n";
constexpr uint64_t kSysAdmin = uint64_t{1} << 21;  // capability numbers of linux/capability.h
constexpr uint64_t kPerfmon = uint64_t{1} << 38;

}  // namespace

TEST_CASE("Counters are closed to whom the driver option restricts them") {
  CHECK(counter_access(kOpen, 0, 580) == CounterAccess::kOpen);
  CHECK(counter_access(kRestricted, 0, 580) == CounterAccess::kClosed);
  CHECK(counter_access(kRestricted, kSysAdmin, 470) == CounterAccess::kPrivileged);
  CHECK(counter_access(kRestricted, ~kSysAdmin & ~kPerfmon, 580) == CounterAccess::kClosed);
  CHECK(counter_access("", 0, 580) == CounterAccess::kUnknown);
}

TEST_CASE("CAP_PERFMON is enough from driver release 565 on") {
  CHECK(counter_access(kRestricted, kPerfmon, 564) == CounterAccess::kClosed);
  CHECK(counter_access(kRestricted, kPerfmon, 565) == CounterAccess::kPrivileged);
}

TEST_CASE("The driver's release is read from both forms of its version line") {
  CHECK(driver_release("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 "
                       "07:15:50 UTC 2025\n"
                       "GCC version:  gcc version 12.3.0\n") == 580);
  CHECK(
      driver_release(
          "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release Build\n") ==
      565);
  CHECK(driver_release("") == 0);
}

TEST_CASE("The effective capabilities are hexadecimal") {
  CHECK(effective_capabilities("CapPrm:\t00000000ffffffff\nCapEff:\t000001ffffffffff\n") ==
        0x1ffffffffff);
  CHECK(effective_capabilities("Name:\tx\n") == 0);
}

TEST_CASE("A filter of system calls is stricter where there are more of them") {
  const auto with = [](const char* text) { return seccomp_of(text); };
  const Seccomp none = with("Seccomp:\t0\nSeccomp_filters:\t0\n");
  const Seccomp strict = with("Seccomp:\t1\nSeccomp_filters:\t0\n");
  const Seccomp container = with("Seccomp:\t2\nSeccomp_filters:\t1\n");
  const Seccomp sandbox = with("Seccomp:\t2\nSeccomp_filters:\t2\n");
  const Seccomp unknown = with("Seccomp:\t2\n");  // before Linux 5.9
  CHECK_FALSE(is_stricter(none, none));
  CHECK_FALSE(is_stricter(none, container));
  CHECK_FALSE(is_stricter(container, container));
  CHECK_FALSE(is_stricter(container, sandbox));
  CHECK_FALSE(is_stricter(unknown, unknown));
  CHECK_FALSE(is_stricter(strict, strict));
  CHECK(is_stricter(container, none));
  CHECK(is_stricter(sandbox, container));
  CHECK(is_stricter(unknown, none));
  CHECK(is_stricter(strict, container));
  CHECK(is_stricter(strict, none));
}

TEST_CASE("A status without lines of seccomp has no filter") {
  CHECK(seccomp_of("Name:\tx\n").mode == 0);
  CHECK_FALSE(seccomp_of("Name:\tx\n").filters.has_value());
}
