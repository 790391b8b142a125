#include "driver/settings.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

namespace simgpu {
namespace {

constexpr int kMaxDevices = 16;

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// 0 for text that is no version.
int parse_version(std::string_view text) {
  const size_t dot = text.find('.');
  const auto major = parse_number(text.substr(0, dot));
  if (dot == std::string_view::npos) return major && *major >= 1000 ? static_cast<int>(*major) : 0;
  const auto minor = parse_number(text.substr(dot + 1));
  return major && minor ? static_cast<int>(*major * 1000 + *minor * 10) : 0;
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
  settings.chip = *find_chip("GH100");
  if (const char* text = std::getenv("SIMGPU_CHIP")) {
    if (const Chip* chip = find_chip(text)) {
      settings.chip = *chip;
    } else {
      std::string known;
      for (const Chip& other : chips())
        known += std::string(known.empty() ? "" : ", ") + other.name;
      complain("SIMGPU_CHIP='" + std::string(text) + "' is not modelled (" + known +
               "); using GH100");
    }
  }
  if (const char* text = std::getenv("SIMGPU_MEMORY")) {
    const auto mebibytes = parse_number(text);
    if (mebibytes && *mebibytes > 0 && *mebibytes <= settings.chip.memory_bytes >> 20) {
      settings.chip.memory_bytes = *mebibytes << 20;
    } else {
      complain("SIMGPU_MEMORY='" + std::string(text) + "' is not a number of MiB that the chip " +
               "has; using all of it");
    }
  }
  if (const char* text = std::getenv("SIMGPU_ASYNC")) {
    settings.async = std::string_view(text) == "1";
    if (!settings.async && std::string_view(text) != "0")
      complain("SIMGPU_ASYNC='" + std::string(text) + "' is neither 0 nor 1; using 0");
  }
  if (const char* text = std::getenv("SIMGPU_COUNTS")) settings.counts = text;
  if (const char* text = std::getenv("SIMGPU_FAULT")) {
    if (std::string_view(text) == "list") {
      std::fputs(list_of_faults().c_str(), stdout);
      std::exit(0);
    }
    std::vector<std::string> complaints;
    settings.faults = parse_faults(text, complaints);
    for (const std::string& why : complaints) complain(why);
  }
  return settings;
}

int driver_version() {
  static const int version = [] {
    constexpr int kDefault = 13000;
    const char* text = std::getenv("SIMGPU_DRIVER_VERSION");
    if (text == nullptr || *text == '\0') return kDefault;
    if (const int wanted = parse_version(text); wanted != 0) return wanted;
    complain("SIMGPU_DRIVER_VERSION='" + std::string(text) + "' is not a version; using 13.0");
    return kDefault;
  }();
  return version;
}

}  // namespace simgpu
