#include "permissions.h"

#include <linux/capability.h>

#include <charconv>
#include <regex>
#include <string>

#include "process.h"

namespace flopinj {
namespace {

template <typename Number>
Number number_or_zero(std::string_view text, int base) {
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

}  // namespace

CounterAccess counter_access(std::string_view params, uint64_t capabilities, unsigned release) {
  const std::string_view admin_only = value_of(params, "RmProfilingAdminOnly:");
  if (admin_only.empty()) return CounterAccess::kUnknown;
  if (admin_only.front() == '0') return CounterAccess::kOpen;
  const bool admin = ((capabilities >> CAP_SYS_ADMIN) & 1) != 0;
  const bool perfmon = ((capabilities >> CAP_PERFMON) & 1) != 0 && release >= 565;
  return admin || perfmon ? CounterAccess::kPrivileged : CounterAccess::kClosed;
}

unsigned driver_release(std::string_view version_text) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 ..."; the open modules
  // say "Open Kernel Module for x86_64" instead. The version is the first word that is a number, a
  // dot and more.
  static const std::regex kVersion(R"((^|\s)(\d{1,9})\.)");
  const std::string line(value_of(version_text, "NVRM version:"));
  std::smatch found;
  return std::regex_search(line, found, kVersion) ? number_or_zero<unsigned>(found.str(2), 10) : 0;
}

uint64_t effective_capabilities(std::string_view status_text) {
  return number_or_zero<uint64_t>(value_of(status_text, "CapEff:"), 16);
}

Seccomp seccomp_of(std::string_view status_text) {
  Seccomp seccomp;
  seccomp.mode = number_or_zero<unsigned>(value_of(status_text, "Seccomp:"), 10);
  const std::string_view filters = value_of(status_text, "Seccomp_filters:");
  if (!filters.empty()) seccomp.filters = number_or_zero<unsigned>(filters, 10);
  return seccomp;
}

bool is_stricter(const Seccomp& one, const Seccomp& other) {
  if (one.mode != other.mode) return one.mode != 0;
  return one.filters && other.filters && *one.filters > *other.filters;
}

}  // namespace flopinj
