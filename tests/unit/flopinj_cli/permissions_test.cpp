#include "permissions.h"

#include "catch.h"

using flopinj::counter_access;
using flopinj::CounterAccess;
using flopinj::driver_release;
using flopinj::effective_capabilities;

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
