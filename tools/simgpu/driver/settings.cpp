#include "driver/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>

namespace simgpu {
namespace {

constexpr int kMaxDevices = 16;

// Faults of the simulated CUPTI, which reads the same variable and leaves unknown names to us.
constexpr std::string_view kCuptiFaults[] = {"second_subscriber",  "no_privileges", "hardware_busy",
                                             "unsupported_device", "enable_fails",  "decode_fails",
                                             "drop_ranges",        "drop_activity", "no_modules",
                                             "repeat_activity",    "slow_host"};

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// `text` is name=count; false when it is another name. A count that is none is reported.
bool read_counted(std::string_view text, std::string_view name, uint64_t& count) {
  if (text.substr(0, name.size()) != name) return false;
  const std::string_view rest = text.substr(name.size());
  if (!rest.empty() && rest.front() != '=') return false;
  const auto number = parse_number(rest.empty() ? rest : rest.substr(1));
  count = number.value_or(0);
  if (count == 0)
    complain("SIMGPU_FAULT: '" + std::string(text) + "' needs a count from 1, as in " +
             std::string(name) + "=3");
  return true;
}

void read_fault(std::string_view fault, Settings& settings) {
  if (fault == "no_device") {
    settings.no_device = true;
  } else if (fault == "no_export_table") {
    settings.no_export_table = true;
  } else if (fault == "no_param_info") {
    settings.no_param_info = true;
  } else if (!read_counted(fault, "launch_failure", settings.failing_launch) &&
             !read_counted(fault, "out_of_memory", settings.failing_alloc) &&
             std::find(std::begin(kCuptiFaults), std::end(kCuptiFaults),
                       fault.substr(0, fault.find('='))) == std::end(kCuptiFaults)) {
    complain("SIMGPU_FAULT: '" + std::string(fault) +
             "' is not a fault; see tools/simgpu/README.md");
  }
}

}  // namespace

void complain(const std::string& text) { std::fprintf(stderr, "simgpu: %s\n", text.c_str()); }

Settings read_settings() {
  Settings settings;
  if (const char* text = std::getenv("SIMGPU_DEVICES")) {
    const auto number = parse_number(text);
    if (number && *number <= kMaxDevices) {
      settings.devices = static_cast<int>(*number);
    } else {
      complain("SIMGPU_DEVICES='" + std::string(text) + "' is not a number from 0 to 16; using 1");
    }
  }
  settings.chip = find_chip("GH100");
  if (const char* text = std::getenv("SIMGPU_CHIP")) {
    if (const Chip* chip = find_chip(text)) {
      settings.chip = chip;
    } else {
      std::string known;
      for (const Chip& other : chips())
        known += std::string(known.empty() ? "" : ", ") + other.name;
      complain("SIMGPU_CHIP='" + std::string(text) + "' is not modelled (" + known +
               "); using GH100");
    }
  }
  if (const char* text = std::getenv("SIMGPU_FAULT")) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      if (comma != 0) read_fault(rest.substr(0, comma), settings);
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
  }
  return settings;
}

}  // namespace simgpu
