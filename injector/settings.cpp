#include <collector/waiting_kernels.h>
#include <injector/settings.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <string_view>

namespace flopinj {
namespace {

constexpr std::string_view kPrefix = "FLOPINJ_";

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

// One variable: its name, what it takes (for the message), and how it is read.
struct Variable {
  std::string_view name;
  std::string_view takes;
  std::function<bool(Settings&, std::string_view)> read;
};

template <class T, size_t N>
auto one_of(T Settings::*member, const Choice<T> (&choices)[N]) {
  return [member, &choices](Settings& s, std::string_view text) {
    for (const auto& choice : choices)
      if (choice.name == text) return s.*member = choice.value, true;
    return false;
  };
}

template <class T>
auto number(T Settings::*member, uint32_t low, uint32_t high) {
  return [member, low, high](Settings& s, std::string_view text) {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high)
      return false;
    s.*member = value;
    return true;
  };
}

auto text(std::string Settings::*member) {
  return [member](Settings& s, std::string_view value) {
    if (value.empty()) return false;
    s.*member = value;
    return true;
  };
}

// Per cent, above 0. `none`, where it may be said, is 0.
auto percent(double Settings::*member, bool may_be_none) {
  return [member, may_be_none](Settings& s, std::string_view text) {
    if (may_be_none && text == "none") return s.*member = 0, true;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value > 0) || value > 100)
      return false;
    s.*member = value;
    return true;
  };
}

bool read_ranks(Settings& s, std::string_view text) {
  auto ranks = RankList::parse(text);
  if (!ranks) return false;
  s.measure_ranks = *std::move(ranks);
  return true;
}

bool read_never_measure(Settings& s, std::string_view text) {
  auto patterns = parse_patterns(text);
  if (!patterns) return false;
  s.never_measure = *std::move(patterns);
  return true;
}

constexpr Choice<Level> kLevels[] = {{"launches", Level::kLaunches}, {"tally", Level::kTally}};
constexpr Choice<Mode> kModes[] = {{"multiplex", Mode::kMultiplex},
                                   {"full", Mode::kFull},
                                   {"timing", Mode::kTiming},
                                   {"count", Mode::kCount},
                                   {"off", Mode::kOff}};
constexpr Choice<log::Level> kLogLevels[] = {{"off", log::Level::kOff},
                                             {"error", log::Level::kError},
                                             {"warn", log::Level::kWarn},
                                             {"info", log::Level::kInfo},
                                             {"debug", log::Level::kDebug}};
constexpr Choice<bool> kSwitch[] = {{"1", true}, {"0", false}};

const std::vector<Variable>& variables() {
  static const std::vector<Variable> table = {
      {"FLOPINJ_OUTPUT", "a file name or pattern (%p %h %r %q{ENV}), - or unix:PATH",
       text(&Settings::output)},
      {"FLOPINJ_LEVEL", "launches or tally", one_of(&Settings::level, kLevels)},
      {"FLOPINJ_MODE", "multiplex, full, timing, count or off", one_of(&Settings::mode, kModes)},
      {"FLOPINJ_FORCE", "0 or 1", one_of(&Settings::force, kSwitch)},
      {"FLOPINJ_LOG", "off, error, warn, info or debug", one_of(&Settings::log_level, kLogLevels)},
      {"FLOPINJ_CUPTI", "the path of a libcupti", text(&Settings::cupti)},
      {"FLOPINJ_FLUSH_MS", "milliseconds from 10 to 1000", number(&Settings::flush_ms, 10, 1'000)},
      {"FLOPINJ_PLAN_WAIT_MS", "milliseconds from 0 to 60000",
       number(&Settings::given_plan_wait_ms, 0, kMostPlanWaitMs)},
      {"FLOPINJ_BUDGET", "per cent of wall time, above 0 to 100, or none",
       percent(&Settings::budget_percent, true)},
      {"FLOPINJ_UNTIL_COVERED", "per cent of GPU time, above 0 to 100",
       percent(&Settings::until_covered_percent, false)},
      {"FLOPINJ_MEASURE_RANKS", "ranks such as 0,8-15, or all, or none", read_ranks},
      {"FLOPINJ_MEASURE_GRAPHS", "0 or 1", one_of(&Settings::measure_graphs, kSwitch)},
      {"FLOPINJ_NEVER_MEASURE", "parts of kernel names, with commas between", read_never_measure},
  };
  return table;
}

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
  for (const auto& variable : variables())
    if (const size_t d = edit_distance(name, variable.name); d < best_distance)
      best = variable.name, best_distance = d;
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

const char* name_of(Mode mode) {
  for (const auto& choice : kModes)
    if (choice.value == mode) return choice.name.data();
  return "";
}

Settings read_settings(const char* const* environment, std::vector<std::string>& problems) {
  Settings settings;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (!entry.starts_with(kPrefix)) continue;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    const auto known = std::find_if(variables().begin(), variables().end(),
                                    [&](const Variable& v) { return v.name == name; });
    if (known == variables().end())
      problems.push_back("unknown variable " + printable(name) + " is ignored: did you mean " +
                         std::string(nearest(name)) + "?");
    else if (!known->read(settings, value))
      problems.push_back(std::string(name) + "=" + printable(value) + " is ignored: it takes " +
                         std::string(known->takes));
  }
  return settings;
}

}  // namespace flopinj
