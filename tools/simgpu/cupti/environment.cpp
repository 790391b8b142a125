#include "environment.h"

#include <cupti_version.h>
#include <dlfcn.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace simgpu::cupti {
namespace {

// From the table in cupti_version.h of 13.5; 12.1.105 itself answers 18, where the table has 19 for
// CUDA 12.0.
struct Release {
  std::string_view name;
  uint32_t api;
};
constexpr uint32_t kLast12 = 28, kLastWithoutRanges = 22, kFirst12 = 18;
constexpr Release kReleases[] = {{"12.1", kFirst12}, {"12.4", kLastWithoutRanges},
                                 {"12.6", 24},       {"12.8", 26},
                                 {"12.9", 27},       {"12.9.1", kLast12},
                                 {"13.0", 130000},   {"13.0.1", 130001},
                                 {"13.1", 130100},   {"13.2", 130200},
                                 {"13.3", 130300},   {"13.4", 130400},
                                 {"13.5", 130500}};

template <class T>
bool parse_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

// The version that this library has when nothing sets it.
uint32_t default_version() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&parse_version), &self) == 0) return CUPTI_API_VERSION;
  if (!std::string_view(self.dli_fname).ends_with("libcupti.so.12")) return CUPTI_API_VERSION;
  void* const library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  const bool ranges = library == nullptr || dlsym(library, "cuptiRangeProfilerEnable") != nullptr;
  if (library != nullptr) dlclose(library);
  return ranges ? kLast12 : kLastWithoutRanges;
}

}  // namespace

uint32_t parse_version(const char* text) {
  const std::string_view wanted = text;
  for (const Release& release : kReleases)
    if (release.name == wanted) return release.api;
  uint32_t number = 0;
  if (!parse_number(wanted, number)) return 0;
  // Between 28 and 130000 the numbering jumped.
  const bool known = (number >= kFirst12 && number <= kLast12) || number >= 130000;
  return known ? number : 0;
}

Environment read_environment() {
  Environment result{default_version(), {}};
  if (const char* text = std::getenv("SIMGPU_CUPTI_VERSION"); text != nullptr && *text != '\0') {
    if (const uint32_t version = parse_version(text); version != 0)
      result.cupti_version = version;
    else
      std::fprintf(stderr,
                   "simgpu: SIMGPU_CUPTI_VERSION=%s is not a CUPTI version; use 12.1, 12.4, 12.6, "
                   "12.8, 12.9, 13.0 ... 13.5\n",
                   text);
  }
  if (const char* text = std::getenv("SIMGPU_FAULT")) {
    std::vector<std::string> complaints;  // the driver's to make
    result.faults = parse_faults(text, complaints);
  }
  if (const char* text = std::getenv("SIMGPU_UNKNOWN_METRICS")) result.unknown_metrics = text;
  if (const char* text = std::getenv("SIMGPU_CHIP_NAME")) result.chip_name = text;
  return result;
}

}  // namespace simgpu::cupti
