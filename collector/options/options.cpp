#include <collector/identity/never_measured.h>
#include <collector/options/options.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "edit_distance.h"
#include "printable_text.h"

namespace flopinj {
namespace {

constexpr double kMostSeconds = 1e8;  // three years

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

constexpr std::array<Choice<Level>, 2> kLevels{
    {{"launches", Level::kLaunches}, {"tally", Level::kTally}}};
constexpr std::array<Choice<Mode>, 5> kModes{{{"multiplex", Mode::kMultiplex},
                                              {"full", Mode::kFull},
                                              {"timing", Mode::kTiming},
                                              {"count", Mode::kCount},
                                              {"off", Mode::kOff}}};
constexpr std::array<Choice<LogLevel>, 5> kLogLevels{{{"off", LogLevel::kOff},
                                                      {"error", LogLevel::kError},
                                                      {"warn", LogLevel::kWarn},
                                                      {"info", LogLevel::kInfo},
                                                      {"debug", LogLevel::kDebug}}};
constexpr std::array<Choice<KernelNameBase>, 2> kNameBases{
    {{"function", KernelNameBase::kFunction}, {"mangled", KernelNameBase::kMangled}}};
constexpr std::array<Choice<bool>, 2> kCaptureRanges{{{"cudaProfilerApi", true}, {"none", false}}};
constexpr std::array<Choice<bool>, 2> kSwitch{{{"1", true}, {"0", false}}};

template <const auto& Choices>
constexpr auto kNames = [] {
  std::array<std::string_view, Choices.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = Choices[i].name;
  return names;
}();

template <auto Member, const auto& Choices>
bool choice(Settings& s, std::string_view text) {
  for (const auto& choice : Choices)
    if (choice.name == text) return s.*Member = choice.value, true;
  return false;
}

template <auto Member, uint32_t Low, uint32_t High>
bool number(Settings& s, std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < Low || value > High)
    return false;
  s.*Member = value;
  return true;
}

template <auto Member>
bool not_empty(Settings& s, std::string_view text) {
  if (text.empty()) return false;
  s.*Member = text;
  return true;
}

// Above 0 to 100, with a percent sign or without.
template <auto Member>
bool percent(Settings& s, std::string_view text) {
  if (text.ends_with('%')) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value > 0) || value > 100)
    return false;
  s.*Member = value;
  return true;
}

bool budget(Settings& s, std::string_view text) {
  if (text == "none") return s.budget_percent = 0, true;
  return percent<&Settings::budget_percent>(s, text);
}

// "500ms", "30s", "5m", "2h", or seconds.
template <auto Member>
bool duration(Settings& s, std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3'600}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !(value > 0) || value > kMostSeconds) return false;
  for (const auto& [unit, seconds] : kUnits)
    if (text.substr(static_cast<size_t>(end - text.data())) == unit)
      return s.*Member = value * seconds, true;
  return false;
}

bool ranks(Settings& s, std::string_view text) {
  auto list = RankList::parse(text);
  if (!list) return false;
  s.measure_ranks = *std::move(list);
  return true;
}

bool patterns(Settings& s, std::string_view text) {
  auto list = parse_patterns(text);
  if (!list) return false;
  // A request adds to what the program was started with.
  s.never_measure.insert(s.never_measure.end(), list->begin(), list->end());
  return true;
}

// NAME=VALUE, and more with commas between. A name is of letters, digits and _, so that it can be a
// column and a label of Prometheus.
bool labels(Settings& s, std::string_view text) {
  constexpr size_t kMost = 64, kMostName = 64;
  std::vector<std::pair<std::string, std::string>> given;
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const size_t equals = one.find('=');
    const std::string_view name = one.substr(0, equals);
    const auto fits = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    if (equals == one.npos || name.empty() || name.size() > kMostName || given.size() == kMost ||
        (name[0] >= '0' && name[0] <= '9') || !std::all_of(name.begin(), name.end(), fits))
      return false;
    given.emplace_back(name, one.substr(equals + 1));
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  s.labels = std::move(given);
  return true;
}

bool kernel_name(Settings& s, std::string_view text) {
  return KernelNames::understood(text) && not_empty<&Settings::kernel_name>(s, text);
}

bool nvtx_include(Settings& s, std::string_view text) {
  return parse_range_expressions(text).has_value() && not_empty<&Settings::nvtx_include>(s, text);
}

bool run_token(Settings& s, std::string_view text) {
  s.run = RunToken::parse(text);
  return s.run.has_value();
}

constexpr bool kByRequest = true, kMany = true;

// clang-format off
const RecordingOption kOptions[] = {
    {"-o,--output", "FLOPINJ_OUTPUT", "NAME", {},
     "a file name or pattern (%p %h %r %q{ENV}), - or unix:PATH",
     not_empty<&Settings::output>, kByRequest},
    {"--force", "FLOPINJ_FORCE", "", {}, "0 or 1", choice<&Settings::force, kSwitch>},
    {"-q,--quiet", "FLOPINJ_QUIET", "", {}, "0 or 1", choice<&Settings::quiet, kSwitch>},
    {"--no-command-line", "FLOPINJ_NO_COMMAND_LINE", "", {},
     "0 or 1", choice<&Settings::no_command_line, kSwitch>, kByRequest},
    {"--job", "FLOPINJ_JOB", "NAME", {}, "a name", not_empty<&Settings::job>, kByRequest},
    {"--label", "FLOPINJ_LABEL", "NAME=VALUE[,NAME=VALUE]", {},
     "names of letters, digits and _, each with = and a value, with commas between", labels,
     kByRequest, kMany},
    {"--dormant", "FLOPINJ_DORMANT", "", {}, "0 or 1", choice<&Settings::dormant, kSwitch>},
    {"--start-after", "FLOPINJ_START_AFTER", "TIME", {},
     "a time such as 500ms, 30s, 5m or 2h", duration<&Settings::start_after_s>},
    {"--duration", "FLOPINJ_DURATION", "TIME", {},
     "a time such as 500ms, 30s, 5m or 2h", duration<&Settings::duration_s>, kByRequest},
    {"-k,--kernel-name", "FLOPINJ_KERNEL_NAME", "NAME|regex:EXPRESSION", {},
     "a kernel's name, or regex: and a POSIX extended expression without \\d, \\1 or (?",
     kernel_name, kByRequest},
    {"--kernel-name-base", "FLOPINJ_KERNEL_NAME_BASE", "BASE", kNames<kNameBases>,
     "function or mangled", choice<&Settings::kernel_name_base, kNameBases>, kByRequest},
    {"--nvtx-include", "FLOPINJ_NVTX_INCLUDE", "RANGES", {},
     "ranges as ncu has them: A/ (push/pop), A (start/end), A/B, A/*/B, [A, A], domain@A/, "
     "and | between two",
     nvtx_include, kByRequest},
    {"--step-range", "FLOPINJ_STEP_RANGE", "NAME", {},
     "the name of an NVTX range, several with | between them, or none",
     not_empty<&Settings::step_range>, kByRequest},
    {"-s,--launch-skip", "FLOPINJ_LAUNCH_SKIP", "N", {},
     "a number of launches from 0 to 4294967295",
     number<&Settings::launch_skip, 0, UINT32_MAX>, kByRequest},
    {"-c,--launch-count", "FLOPINJ_LAUNCH_COUNT", "N", {},
     "a number of launches from 1 to 4294967295",
     number<&Settings::launch_count, 1, UINT32_MAX>, kByRequest},
    {"--capture-range", "FLOPINJ_CAPTURE_RANGE", "RANGE", kNames<kCaptureRanges>,
     "cudaProfilerApi or none", choice<&Settings::capture_range, kCaptureRanges>},
    {"--metrics-file", "FLOPINJ_METRICS_FILE", "NAME", {},
     "a file name or pattern (%p %h %r %q{ENV})", not_empty<&Settings::metrics_file>},
    {"--host-times", "FLOPINJ_HOST_TIMES", "", {},
     "0 or 1", choice<&Settings::host_times, kSwitch>, kByRequest},
    {"--no-copies", "FLOPINJ_NO_COPIES", "", {},
     "0 or 1", choice<&Settings::no_copies, kSwitch>, kByRequest},
    {"--no-energy", "FLOPINJ_NO_ENERGY", "", {},
     "0 or 1", choice<&Settings::no_energy, kSwitch>, kByRequest},
    {"--no-control", "FLOPINJ_NO_CONTROL", "", {},
     "0 or 1", choice<&Settings::no_control, kSwitch>},
    {"--level", "FLOPINJ_LEVEL", "LEVEL", kNames<kLevels>,
     "launches or tally", choice<&Settings::level, kLevels>, kByRequest},
    {"--mode", "FLOPINJ_MODE", "MODE", kNames<kModes>,
     "multiplex, full, timing, count or off", choice<&Settings::mode, kModes>, kByRequest},
    {"--budget", "FLOPINJ_BUDGET", "PERCENT|none", {},
     "per cent of wall time, above 0 to 100, or none", budget, kByRequest},
    {"--until-covered", "FLOPINJ_UNTIL_COVERED", "PERCENT", {},
     "per cent of GPU time, above 0 to 100", percent<&Settings::until_covered_percent>, kByRequest},
    {"--measure-ranks", "FLOPINJ_MEASURE_RANKS", "RANKS", {},
     "ranks such as 0,8-15, or all, or none", ranks, kByRequest},
    {"--never-measure", "FLOPINJ_NEVER_MEASURE", "PATTERN[,PATTERN]", {},
     "parts of kernel names, with commas between", patterns, kByRequest, kMany},
    {"--log-level", "FLOPINJ_LOG", "LEVEL", kNames<kLogLevels>,
     "off, error, warn, info or debug", choice<&Settings::log_level, kLogLevels>},
    {"--flush-ms", "FLOPINJ_FLUSH_MS", "N", {},
     "milliseconds from 10 to 1000", number<&Settings::flush_ms, 10, 1'000>, kByRequest},
    {"--plan-wait-ms", "FLOPINJ_PLAN_WAIT_MS", "N", {},
     "milliseconds from 0 to 60000",
     number<&Settings::given_plan_wait_ms, 0, kMostPlanWaitMs>, kByRequest},
    {"--cupti", "FLOPINJ_CUPTI", "PATH", {}, "a libcupti, or a folder that has one",
     not_empty<&Settings::cupti>},
    {"--findings", "FLOPINJ_FINDINGS", "FOLDER", {}, "a folder", not_empty<&Settings::findings>},
    {"", "FLOPINJ_RUN", "", {}, "what flopinj run sets it to", run_token},
};
// clang-format on

}  // namespace

std::span<const RecordingOption> recording_options() { return kOptions; }

const RecordingOption* recording_option_of(std::string_view variable) {
  const auto options = recording_options();
  const auto known = std::ranges::find(options, variable, &RecordingOption::variable);
  return known != options.end() ? &*known : nullptr;
}

std::string unknown_variable(std::string_view name) {
  constexpr size_t kShown = 80, kFar = 3, kPrefix = std::string_view("FLOPINJ_").size();
  const std::string_view shown = name.substr(0, kShown);
  const RecordingOption* nearest = nullptr;
  // Of its own letters a third may be wrong.
  size_t least = std::clamp<size_t>((std::max(shown.size(), kPrefix) - kPrefix) / 3, 1, kFar) + 1;
  for (const RecordingOption& option : recording_options()) {
    const bool is_start = option.variable.starts_with(shown);  // FLOPINJ_OUT
    const size_t distance = is_start ? 0 : edit_distance(shown, option.variable);
    if (distance < least) nearest = &option;
    least = std::min(least, distance);
  }
  return "unknown variable " + printable(shown) + " is ignored: " +
         (nearest != nullptr ? "did you mean " + std::string(nearest->variable) + "?"
                             : "man flopinj has the variables that there are");
}

std::string choice_of(const Settings& settings) {
  const auto kept = [](uint32_t number) { return number == 0 ? "" : std::to_string(number); };
  const Settings defaults;
  std::string text;
  const auto add = [&text](std::string_view option, std::string_view value) {
    if (value.empty()) return;
    if (!text.empty()) text += ' ';
    text.append(option).append(" ").append(value);
  };
  if (settings.capture_range) add("--capture-range", kCaptureRanges[0].name);
  add("--kernel-name", settings.kernel_name);
  if (settings.kernel_name_base != defaults.kernel_name_base && !settings.kernel_name.empty())
    add("--kernel-name-base", kNameBases[1].name);
  add("--nvtx-include", settings.nvtx_include);
  add("--launch-skip", kept(settings.launch_skip));
  add("--launch-count", kept(settings.launch_count));
  return text;
}

const char* name_of(Mode mode) {
  for (const auto& choice : kModes)
    if (choice.value == mode) return choice.name.data();
  return "";
}

}  // namespace flopinj
