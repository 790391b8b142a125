#include <collector/options/options.h>
#include <injector/process/settings.h>

#include <algorithm>
#include <string_view>

namespace flopinj {
namespace {

constexpr std::string_view kPrefix = "FLOPINJ_";

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string_view nearest(std::string_view name) {
  std::string_view best;
  size_t best_distance = ~size_t{0};
  for (const RecordingOption& option : recording_options())
    if (const size_t d = edit_distance(name, option.variable); d < best_distance)
      best = option.variable, best_distance = d;
  return best;
}

// Environment text goes to a terminal: no control characters, no novels.
std::string printable(std::string_view value) {
  std::string out;
  for (const char c : value.substr(0, 80))
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out;
}

}  // namespace

Settings read_settings(const char* const* environment, std::vector<std::string>& problems) {
  Settings settings;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (!entry.starts_with(kPrefix)) continue;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
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
  return settings;
}

}  // namespace flopinj
