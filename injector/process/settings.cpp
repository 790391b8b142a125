#include <collector/options/options.h>
#include <injector/process/settings.h>

#include <algorithm>
#include <string_view>

#include "edit_distance.h"

namespace flopinj {
namespace {

constexpr std::string_view kPrefix = "FLOPINJ_";

std::string_view nearest(std::string_view name) {
  const auto distance = [&](const RecordingOption& option) {
    return edit_distance(name.substr(0, 80), option.variable);
  };
  return std::ranges::min_element(recording_options(), {}, distance)->variable;
}

// Environment text goes to a terminal: no control characters, no novels.
std::string printable(std::string_view value) {
  std::string out;
  for (const char c : value.substr(0, 80))
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out;
}

}  // namespace

void apply_setting(Settings& settings, std::string_view entry, std::vector<std::string>& problems) {
  if (!entry.starts_with(kPrefix)) return;
  const size_t equals = entry.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view name = entry.substr(0, equals);
  const std::string_view value = entry.substr(equals + 1);
  const auto options = recording_options();
  const auto known = std::ranges::find(options, name, &RecordingOption::variable);
  if (known == options.end())
    problems.push_back("unknown variable " + printable(name) + " is ignored: did you mean " +
                       std::string(nearest(name)) + "?");
  else if (!known->read(settings, value))
    problems.push_back(std::string(name) + "=" + printable(value) + " is ignored: it takes " +
                       std::string(known->takes));
}

Settings read_settings(const char* const* environment, std::vector<std::string>& problems) {
  Settings settings;
  for (; environment != nullptr && *environment != nullptr; ++environment)
    apply_setting(settings, *environment, problems);
  return settings;
}

}  // namespace flopinj
