#include <collector/identity/never_measured.h>
#include <collector/options/options.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

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

// Above 0 to 100.
template <auto Member>
bool percent(Settings& s, std::string_view text) {
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

bool kernel_name(Settings& s, std::string_view text) {
  return KernelNames::understood(text) && not_empty<&Settings::kernel_name>(s, text);
}

bool nvtx_include(Settings& s, std::string_view text) {
  return parse_range_expressions(text).has_value() && not_empty<&Settings::nvtx_include>(s, text);
}

bool close_site(Settings& s, std::string_view text) {
  s.close_windows = parse_close_site(text);
  return s.close_windows.has_value();
}

bool run_token(Settings& s, std::string_view text) {
  s.run = RunToken::parse(text);
  return s.run.has_value();
}

constexpr bool kByRequest = true;

const RecordingOption kOptions[] = {
    {"-o,--output",
     "FLOPINJ_OUTPUT",
     "NAME",
     {},
     "a file name or pattern (%p %h %r %q{ENV}), - or unix:PATH",
     "Trace to write (flop-%p.pb): a file, a FIFO, - for stdout, unix:/path for a listening "
     "socket. %p is the "
     "process id, %h the host, %r the rank in the job, %q{NAME} an environment variable",
     false,
     not_empty<&Settings::output>,
     kByRequest},
    {"--force",
     "FLOPINJ_FORCE",
     "",
     {},
     "0 or 1",
     "Overwrite traces of this user that are older than the run",
     false,
     choice<&Settings::force, kSwitch>},
    {"-q,--quiet",
     "FLOPINJ_QUIET",
     "",
     {},
     "0 or 1",
     "Say nothing on stderr when the recording has ended. Else one line says what was recorded and "
     "how to read it, or why nothing was",
     false,
     choice<&Settings::quiet, kSwitch>},
    {"--no-command-line",
     "FLOPINJ_NO_COMMAND_LINE",
     "",
     {},
     "0 or 1",
     "Leave the program's command line out of the trace. Else it is there, with [hidden] for the "
     "values of options whose names hold a word such as password, secret or token",
     false,
     choice<&Settings::no_command_line, kSwitch>,
     kByRequest},
    {"--job",
     "FLOPINJ_JOB",
     "NAME",
     {},
     "a name",
     "Name of the job that the program is part of, for reports of several. Not given: "
     "SLURM_JOB_ID, "
     "PBS_JOBID, LSB_JOBID, FLUX_JOB_ID or TORCHELASTIC_RUN_ID, where one is set",
     false,
     not_empty<&Settings::job>,
     kByRequest},
    {"--dormant",
     "FLOPINJ_DORMANT",
     "",
     {},
     "0 or 1",
     "Record nothing until flopinj attach asks for it: until then the library costs nothing",
     false,
     choice<&Settings::dormant, kSwitch>},
    {"--start-after",
     "FLOPINJ_START_AFTER",
     "TIME",
     {},
     "a time such as 500ms, 30s, 5m or 2h",
     "Begin to record so long after the program starts CUDA: 500ms, 30s, 5m, 2h",
     false,
     duration<&Settings::start_after_s>},
    {"--duration",
     "FLOPINJ_DURATION",
     "TIME",
     {},
     "a time such as 500ms, 30s, 5m or 2h",
     "Record for so long, then let go of the program: 500ms, 30s, 5m, 2h",
     false,
     duration<&Settings::duration_s>,
     kByRequest},
    {"-k,--kernel-name",
     "FLOPINJ_KERNEL_NAME",
     "NAME|regex:EXPRESSION",
     {},
     "a kernel's name, or regex: and a POSIX extended expression without \\d, \\1 or (?",
     "Record launches of kernels of this name only, or of names in which the expression is found, "
     "as in ncu",
     false,
     kernel_name,
     kByRequest},
    {"--kernel-name-base", "FLOPINJ_KERNEL_NAME_BASE", "BASE", kNames<kNameBases>,
     "function or mangled",
     "Name that --kernel-name goes by. function: without namespaces, template arguments and "
     "parameters (the default, as in ncu); mangled: as the driver has it",
     false, choice<&Settings::kernel_name_base, kNameBases>, kByRequest},
    {"--nvtx-include",
     "FLOPINJ_NVTX_INCLUDE",
     "RANGES",
     {},
     "ranges as ncu has them: A/ (push/pop), A (start/end), A/B, A/*/B, [A, A], domain@A/, and | "
     "between two",
     "Record launches inside these NVTX ranges only, as in ncu: A/ is the push/pop range A, A the "
     "start/end range; A/B: B directly in A, A/*/B: anywhere in it, A/+/B: with one range between; "
     "[A, A]: the outermost, the innermost; D@A/: of the domain D; A,B: inside both start/end "
     "ranges. A vertical bar between two: inside either (ncu: the option twice). No regex:",
     false,
     nvtx_include,
     kByRequest},
    {"--step-range",
     "FLOPINJ_STEP_RANGE",
     "NAME",
     {},
     "the name of an NVTX range, several with | between them, or none",
     "NVTX range around each training step, push/pop or start/end, in any domain; a number at its "
     "end does not matter. A vertical bar between two: either. none: steps are not recorded. Not "
     "given: step, iteration, train_step, ProfilerStep#3 and the like",
     false,
     not_empty<&Settings::step_range>,
     kByRequest},
    {"-s,--launch-skip",
     "FLOPINJ_LAUNCH_SKIP",
     "N",
     {},
     "a number of launches from 0 to 4294967295",
     "Pass over the first N launches, of those that --kernel-name and --nvtx-include choose, as in "
     "ncu. A launch of a CUDA graph is one",
     false,
     number<&Settings::launch_skip, 0, UINT32_MAX>,
     kByRequest},
    {"-c,--launch-count",
     "FLOPINJ_LAUNCH_COUNT",
     "N",
     {},
     "a number of launches from 1 to 4294967295",
     "Record N launches, counted as for --launch-skip and after those, then let go of the program, "
     "as in ncu",
     false,
     number<&Settings::launch_count, 1, UINT32_MAX>,
     kByRequest},
    {"--capture-range", "FLOPINJ_CAPTURE_RANGE", "RANGE", kNames<kCaptureRanges>,
     "cudaProfilerApi or none",
     "cudaProfilerApi: record from the program's first call of cudaProfilerStart to its "
     "cudaProfilerStop, as nsys does with --capture-range-end stop, and lie dormant before and "
     "after. none: from the start (the default)",
     false, choice<&Settings::capture_range, kCaptureRanges>},
    {"--no-control",
     "FLOPINJ_NO_CONTROL",
     "",
     {},
     "0 or 1",
     "Listen to no flopinj attach, detach or status: no socket and no thread for them",
     false,
     choice<&Settings::no_control, kSwitch>},
    {"--level", "FLOPINJ_LEVEL", "LEVEL", kNames<kLevels>, "launches or tally",
     "launches: every launch; tally: counts per kernel and range", false,
     choice<&Settings::level, kLevels>, kByRequest},
    {"--mode", "FLOPINJ_MODE", "MODE", kNames<kModes>, "multiplex, full, timing, count or off",
     "multiplex: each distinct kernel is measured a few times, all are timed and counted; full: "
     "every launch is measured, by replay: slow, the reference; timing: no counters; count: only "
     "launches; off: nothing",
     false, choice<&Settings::mode, kModes>, kByRequest},
    {"--budget",
     "FLOPINJ_BUDGET",
     "PERCENT|none",
     {},
     "per cent of wall time, above 0 to 100, or none",
     "Most that reading counters may cost, in per cent of wall time, or none (1). The share of "
     "200 s, 2 s at 1 %, may be used at once at the start, on kernels without counts",
     false,
     budget,
     kByRequest},
    {"--until-covered",
     "FLOPINJ_UNTIL_COVERED",
     "PERCENT",
     {},
     "per cent of GPU time, above 0 to 100",
     "Stop measuring once so many per cent of GPU time have had complete counts for 5 s; kernels "
     "that cannot be measured are left out",
     false,
     percent<&Settings::until_covered_percent>,
     kByRequest},
    {"--measure-ranks",
     "FLOPINJ_MEASURE_RANKS",
     "RANKS",
     {},
     "ranks such as 0,8-15, or all, or none",
     "Ranks of the job that read counters, the others count and time: 0,8-15 or all or none (0)",
     false,
     ranks,
     kByRequest},
    {"--never-measure",
     "FLOPINJ_NEVER_MEASURE",
     "PATTERN[,PATTERN]",
     {},
     "parts of kernel names, with commas between",
     "Kernels that wait for the host or for a later launch, and so would hang while they are "
     "measured: parts of their mangled names, in any case, beside the built-in ones that doctor "
     "shows. May be repeated; flopinj attach adds to those of the start",
     true,
     patterns,
     kByRequest},
    {"--close-windows", "FLOPINJ_CLOSE_WINDOWS", "SITE", kCloseSiteNames, "exit, enter or own",
     "Where windows in which counters are read are closed: at the exit of their last launch, at "
     "the "
     "enter of the launch behind it, or at that only on the thread that opened them (own). Not "
     "given: learned from the first windows",
     false, close_site, kByRequest},
    {"--log-level", "FLOPINJ_LOG", "LEVEL", kNames<kLogLevels>, "off, error, warn, info or debug",
     "What the library says on stderr: off, error, warn (the default), info, or debug, which has a "
     "line for every measurement window",
     false, choice<&Settings::log_level, kLogLevels>},
    {"--flush-ms",
     "FLOPINJ_FLUSH_MS",
     "N",
     {},
     "milliseconds from 10 to 1000",
     "Longest time that data stays in memory, in milliseconds, 10 to 1000 (250)",
     false,
     number<&Settings::flush_ms, 10, 1'000>,
     kByRequest},
    {"--plan-wait-ms",
     "FLOPINJ_PLAN_WAIT_MS",
     "N",
     {},
     "milliseconds from 0 to 60000",
     "How long a context's first launch waits for the counters to be ready, in milliseconds, so "
     "that "
     "it is measured too (0; mode full: 60000)",
     false,
     number<&Settings::given_plan_wait_ms, 0, kMostPlanWaitMs>,
     kByRequest},
    {"--cupti",
     "FLOPINJ_CUPTI",
     "PATH",
     {},
     "the path of a libcupti",
     "The libcupti to load, where the program brings none",
     false,
     not_empty<&Settings::cupti>},
    {"",
     "FLOPINJ_RUN",
     "",
     {},
     "what flopinj run sets it to",
     "Set by flopinj run: when the run began, and where its watcher listens",
     false,
     run_token},
};

}  // namespace

std::span<const RecordingOption> recording_options() { return kOptions; }

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
