#include "environment.h"

#include <cupti_version.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace simgpu::cupti {
namespace {

// From the table in cupti_version.h.
struct Release {
  std::string_view name;
  uint32_t api;
};
constexpr Release kReleases[] = {{"12.6", 24},   {"12.8", 26},     {"12.9", 27},
                                 {"12.9.1", 28}, {"13.0", 130000}, {"13.0.1", 130001}};

template <class T>
bool parse_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

void apply(Faults& faults, std::string_view item) {
  const size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  uint64_t number = 0;
  if (equals != std::string_view::npos) parse_number(item.substr(equals + 1), number);
  if (name == "second_subscriber") faults.second_subscriber = true;
  if (name == "no_privileges") faults.no_privileges = true;
  if (name == "hardware_busy") faults.hardware_busy = true;
  if (name == "unsupported_device") faults.unsupported_device = true;
  if (name == "enable_fails") faults.enable_fails = true;
  if (name == "decode_fails") faults.decode_fails = true;
  if (name == "graph_windows_fail") faults.graph_windows_fail = true;
  if (name == "no_modules") faults.no_modules = true;
  if (name == "drop_ranges") faults.drop_ranges = number;
  if (name == "repeat_activity") faults.repeat_activity = number;
  if (name == "drop_activity") faults.drop_activity = number;
  if (name == "slow_host") faults.slow_host = number;
}

}  // namespace

uint32_t parse_version(const char* text) {
  const std::string_view wanted = text;
  for (const Release& release : kReleases)
    if (release.name == wanted) return release.api;
  uint32_t number = 0;
  if (!parse_number(wanted, number)) return 0;
  // 24 is the oldest with the range profiler; between 28 and 130000 the numbering jumped.
  const bool known = (number >= 24 && number <= 28) || number >= 130000;
  return known ? number : 0;
}

Faults parse_faults(const char* text) {
  Faults faults;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    apply(faults, rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return faults;
}

Environment read_environment() {
  Environment result{CUPTI_API_VERSION, {}};
  if (const char* text = std::getenv("SIMGPU_CUPTI_VERSION"); text != nullptr && *text != '\0') {
    if (const uint32_t version = parse_version(text); version != 0)
      result.cupti_version = version;
    else
      std::fprintf(
          stderr,
          "simgpu: SIMGPU_CUPTI_VERSION=%s is not a CUPTI version; use 12.6, 12.8, 12.9 or 13.0\n",
          text);
  }
  if (const char* text = std::getenv("SIMGPU_FAULT")) result.faults = parse_faults(text);
  if (const char* text = std::getenv("SIMGPU_GRAPH_RANGES"); text != nullptr && *text != '\0') {
    if (const std::string_view ranges = text; ranges == "launch")
      result.graph_ranges = GraphRanges::kLaunch;
    else if (ranges != "kernel")
      std::fprintf(stderr, "simgpu: SIMGPU_GRAPH_RANGES=%s is neither kernel nor launch\n", text);
  }
  if (const char* text = std::getenv("SIMGPU_UNKNOWN_METRICS")) result.unknown_metrics = text;
  if (const char* text = std::getenv("SIMGPU_CHIP_NAME")) result.chip_name = text;
  return result;
}

}  // namespace simgpu::cupti
