#include <collector/options/cupti_file.h>
#include <collector/trace/sink/descriptor.h>
#include <collector/trace/sink/trace_file.h>
#include <injector/counters/access/captures.h>
#include <injector/process/capture_range.h>
#include <injector/process/command_line.h>
#include <injector/process/helper_threads.h>
#include <injector/process/log.h>
#include <injector/process/process.h>
#include <injector/process/run_watch.h>
#include <injector/recording.h>
#include <injector/requests.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <thread>
#include <utility>

namespace flopinj {
namespace {

// That the end of a recording waits for NVML's last answer.
constexpr auto kMostForEnergy = std::chrono::milliseconds(500);
// That who asked for a recording waits for the first bytes of its trace.
constexpr auto kMostForHeader = std::chrono::seconds(1);

CollectorConfig config_for(const Settings& settings) {
  CollectorConfig config;
  config.level = settings.level;
  config.expect_times = settings.mode != Mode::kCount;
  config.flush_period_ms = settings.flush_ms;
  config.scheduler.budget = settings.budget_percent / 100;  // 0 is without limit for both
  config.scheduler.until_covered = settings.until_covered_percent / 100;
  config.scheduler.every_launch = settings.mode == Mode::kFull;
  config.never_measure = settings.never_measure;
  config.kernel_name = settings.kernel_name;
  config.step_range = settings.step_range;
  config.kernel_name_base = settings.kernel_name_base;
  if (!settings.nvtx_include.empty())
    config.ranges = parse_range_expressions(settings.nvtx_include).value_or(config.ranges);
  return config;
}

uint64_t trace_ticks() noexcept {
  const Edge* const edge = recording_edge();
  return edge != nullptr ? edge->now_ns() : 0;
}

OpenedTrace open_output(const Settings& settings, const ProcessInfo& process) {
  OutputNameContext context;
  context.pid = process.pid;
  context.host = process.hostname;
  context.rank = process.rank;
  context.environment = [](const char* name) -> const char* { return std::getenv(name); };
  SinkOptions options;
  options.force = settings.force;
  if (settings.run) options.keep_from_ns = settings.run->started_ns;
  return open_trace(settings.output, context, process.world_size, options);
}

}  // namespace

// The answer that came quickest says best when it was given.
void Edge::set_clock() noexcept {
  constexpr int kAnswers = 3;
  uint64_t quickest = std::numeric_limits<uint64_t>::max(), ahead = 0;
  for (int i = 0; i < kAnswers; ++i) {
    const uint64_t asked = monotonic_ns();
    uint64_t now = 0;
    if (cupti.timestamp(&now) != CUPTI_SUCCESS) now = realtime_ns();
    const uint64_t took = monotonic_ns() - asked;
    if (took >= quickest) continue;
    quickest = took;
    ahead = now - (asked + took / 2);
  }
  const auto before = clock_ahead_ns.exchange(ahead, std::memory_order_relaxed);
  const auto drift = static_cast<uint64_t>(std::abs(static_cast<int64_t>(ahead - before)));
  clock_error_ns = quickest + (before != 0 ? drift : 0);
}

Recording::Recording(const Settings& settings, Begin begin, std::function<bool()> program_ended) {
  edge_.settings = settings;
  edge_.energy = settings.no_energy ? nullptr : &energy_;
  edge_.set_clock();
  edge_.late = begin != Begin::kWithProgram;
  edge_.from_inside = begin == Begin::kFromInside;
  edge_.in_capture_range = edge_.settings.capture_range = begin == Begin::kInCaptureRange;
  collector_ = std::make_unique<Collector>(config_for(settings), hooks(std::move(program_ended)));
  edge_.collector = collector_.get();
}

CollectorHooks Recording::hooks(std::function<bool()> program_ended) {
  CollectorHooks hooks;
  hooks.thread_started = [] { count_helper_thread("flopinj-writer"); };
  hooks.thread_ended = [this] {
    metrics_.remove();
    helper_thread_ended();
  };
  hooks.flush_times = [this] {
    if (left_) return;
    edge_.set_clock();
    if (activity_) activity_->flush();
  };
  if (edge_.energy != nullptr)
    hooks.energy = [this] {
      if (energy_.is_late())
        collector_->diagnostic(
            Severity::kWarning, "energy.no_answer",
            "NVML does not answer: the energy of devices is not known, or not to the end");
      return energy_.read();
    };
  hooks.program_ended = [this, ended = std::move(program_ended)] {
    write_metrics();
    return ended();
  };
  hooks.activity_lost = [this] { return activity_ ? activity_->lost() : 0; };
  hooks.now_ns = [this] { return edge_.now_ns(); };
  hooks.clock_error_ns = [this] {
    return edge_.cuda.has_own_clock() ? uint64_t{0} : edge_.clock_error_ns;
  };
  hooks.program_ns = [this] { return edge_.cuda.clock_ns(); };
  hooks.real_ns = monotonic_ns;
  hooks.thread_cpu_ns = thread_cpu_ns;
  hooks.thread_name = thread_name;
  hooks.log_error = [](std::string_view line) { log::error(line); };
  hooks.log_info = [](std::string_view line) { log::info(line); };
  hooks.closed = [this](const RecordingSummary& summary) {
    process_state().session.trace_closed = true;
    if (closing_) closing_(summary);
  };
  hooks.cut = [this] { tell_watcher(edge_.settings, RunEvent::kCut, output_); };
  return hooks;
}

ProcessInfo Recording::describe() {
  const Settings& settings = edge_.settings;
  ProcessInfo process = describe_process();
  process.simulated = process.ptx_counts = edge_.cuda.simulated;
  process.simulated_clock = edge_.cuda.has_own_clock();
  process.driver_version = driver_version(edge_.cuda);
  process.mode = name_of(settings.mode);
  process.counters = reads_counters(settings.mode);
  process.measures = edge_.measures =
      process.counters && settings.measure_ranks.contains(process.rank);
  process.budget_percent = settings.budget_percent;
  process.choice = choice_of(settings);
  if (!settings.job.empty()) {
    process.job_id = settings.job;
    process.job_id_source = "FLOPINJ_JOB";
  }
  for (const auto& given : settings.labels) {
    std::erase_if(process.labels, [&](const Label& known) { return known.name == given.first; });
    process.labels.push_back({given.first, given.second, "FLOPINJ_LABEL"});
  }
  if (settings.run) process.run_id = settings.run->id;
  if (settings.no_command_line)
    process.command_line.clear();
  else
    hide_secrets(process.command_line);
  return process;
}

// CUDA and NVTX each load the library that their variable names. Where the two differ, the trace
// has launches and no ranges.
void Recording::check_nvtx_variable() {
  const char* const cuda = std::getenv("CUDA_INJECTION64_PATH");
  const char* const nvtx = std::getenv("NVTX_INJECTION64_PATH");
  std::error_code error;
  if (cuda == nullptr || nvtx == nullptr || std::string_view(cuda) == nvtx ||
      std::filesystem::equivalent(cuda, nvtx, error))
    return;
  const std::string line = std::string("NVTX_INJECTION64_PATH names another library (") + nvtx +
                           "): the program's NVTX ranges go there, and the trace has none; set "
                           "it to the path in CUDA_INJECTION64_PATH";
  log::warn(line);
  collector_->diagnostic(Severity::kWarning, "nvtx.other_library", line);
}

void Recording::say_what_is_missing() {
  if (process_.counters && !process_.measures)
    log::info("rank " + std::to_string(process_.rank) +
              " reads no counters: launches are counted and timed, others measure "
              "(FLOPINJ_MEASURE_RANKS)");
  if (!edge_.cupti.passed_over.empty()) {
    log::warn(edge_.cupti.passed_over);
    collector_->diagnostic(Severity::kWarning, "cupti.passed_over", edge_.cupti.passed_over);
  }
  if (edge_.measures && !edge_.cupti.range_profiler) {
    const std::string why =
        edge_.cupti.path + " has no " + edge_.cupti.missing +
        ": kernels are timed, and no FLOP are counted. To count them: " + std::string(kToCountFlop);
    log::warn(why);
    collector_->diagnostic(Severity::kWarning, "cupti.no_range_profiler", why);
  }
  if (edge_.late) {
    std::string line =
        "the recording began while the program was running: NVTX ranges that were open then are "
        "not known, and kernels loaded before are told apart by name only";
    static_assert(Captures::kUnknownForNs == 2'000'000'000);
    if (edge_.measures && !edge_.from_inside)
      line +=
          "; in the first two seconds, as a capture of a CUDA graph may have gone on, no "
          "counters were read";
    collector_->diagnostic(Severity::kInfo, "session.late", line);
  }
  check_nvtx_variable();
}

void Recording::open_metrics_file() {
  std::string why;
  if (!edge_.settings.metrics_file.empty() &&
      !metrics_.open(edge_.settings.metrics_file, process_, why))
    log::warn({"--metrics-file ", edge_.settings.metrics_file, ": ", why});
}

// What cannot be written is said once, and counted.
void Recording::write_metrics() {
  const uint64_t now = monotonic_ns();
  if (!metrics_.is_due(now) || session_phase() != Phase::kRecording) return;
  const auto devices = edge_.energy != nullptr ? energy_.read() : std::vector<DeviceEnergy>{};
  const int error = metrics_.write(now, answer("status\n"), devices);
  if (error == 0) return;
  const std::string line = "cannot write " + metrics_.name() + ": " + errno_text(error);
  if (!std::exchange(metrics_failed_, true)) log::warn(line);
  collector_->diagnostic(Severity::kWarning, "metrics.file", line);
}

bool Recording::connect(std::string& error) {
  const CuptiThreadsAreHelpers naming;
  began_ns_ = monotonic_ns();
  load_cuda(edge_.cuda);
  process_ = describe();
  // The tracer is made before it takes over a subscription, which has to be ended.
  if (subscription_waits(edge_.cupti)) {
    tracer_.emplace(edge_);
    tracer_->adopt(take_subscription()->handle);
    return read_version(edge_.cupti, error);
  }
  if (load_cupti(edge_.settings.cupti, edge_.cuda, edge_.cupti, error)) {
    tracer_.emplace(edge_);
    if (tracer_->subscribe(error) && read_version(edge_.cupti, error)) return true;
  }
  // The driver calls us before it looks for devices.
  if (!has_gpu(edge_.cuda))
    error = "there is no GPU here (no device file that the driver could open)";
  return false;
}

bool Recording::open(std::string& error) {
  process_.cupti_version = edge_.cupti.version;
  edge_.set_clock();
  edge_.own_clock.store(edge_.cuda.has_own_clock(), std::memory_order_release);
  const HostTicks clock = edge_.cuda.has_own_clock() ? trace_ticks : cpu_ticks;
  host_clock.store(edge_.settings.host_times ? clock : nullptr, std::memory_order_relaxed);
  process_.clock_trace_ns = edge_.now_ns();
  // Before there is a trace: a CUPTI that never answers leaves no empty file.
  if (edge_.settings.mode != Mode::kCount) {
    const CuptiThreadsAreHelpers naming;  // ends before the writer asks threads for their names
    std::string why = "no memory for CUPTI's buffers";
    ActivityBuffers* const buffers = Activity::process_buffers(edge_.cupti);
    if (buffers != nullptr) activity_.emplace(edge_, *buffers);
    if (!activity_ || !activity_->start(why)) {
      activity_.reset();
      log::warn(why + "; launches are counted without times");
      collector_->diagnostic(Severity::kWarning, "cupti.activity", why);
    }
  }
  process_.copies = activity_ && activity_->has_copies();
  if (activity_ && !process_.copies && !edge_.settings.no_copies)
    collector_->diagnostic(Severity::kInfo, "cupti.no_copies",
                           "CUPTI gives no times of copies: idle time in which they run is not "
                           "told from other");
  OpenedTrace trace = open_output(edge_.settings, process_);
  if (!trace.sink) return error = trace.error, false;
  if (!trace.notice.empty()) log::warn(trace.notice);
  output_ = trace.name;
  tell_watcher(edge_.settings, RunEvent::kRecording, output_);
  say_what_is_missing();
  open_metrics_file();
  closing_ =
      closing_words(edge_.settings, process_, {trace.name, trace.others}, edge_.cuda.refusal);
  if (collector_->start(std::move(trace.sink), process_)) return true;
  return error = "cannot start a thread", false;
}

bool Recording::enable(std::string& error) {
  if (tracer_->enable(error)) {
    // The answer to a request names a trace that can be read.
    if (edge_.late && !edge_.in_capture_range) collector_->await_header(kMostForHeader);
    collector_->add_startup_ns(monotonic_ns() - began_ns_);
    log::info({"recording to ", output_});
    return true;
  }
  collector_->diagnostic(Severity::kError, "cupti.callbacks", error);
  return false;
}

bool Recording::give_up() noexcept {
  if (tracer_) tracer_->end();
  if (!collector_->close(EndReason::kFailure)) return false;
  if (activity_) activity_->stop();
  return !tracer_ || tracer_->planner_ended();
}

void Recording::leave() noexcept {
  constexpr std::string_view kLine =
      "the program ends, and for 10 s a recording has been beginning or ending, as where CUPTI "
      "does not answer: launches may be missing";
  left_ = true;
  log::error(kLine);
  collector_->diagnostic(Severity::kError, "session.unfinished", kLine);
  collector_->close(EndReason::kFailure);
}

void Recording::await_quiet() {
  constexpr auto kLongest = std::chrono::seconds(5);
  constexpr auto kLookEvery = std::chrono::milliseconds(1);
  const auto give_up = std::chrono::steady_clock::now() + kLongest;
  tracer_->end_measuring();
  while (tracer_->is_disturbed() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(kLookEvery);
}

void Recording::stop_taking() noexcept {
  tracer_->disable();
  // From now on flush() takes all there is.
  if (activity_) activity_->finish();
  energy_.finish(kMostForEnergy);
}

bool Recording::close() noexcept {
  if (!collector_->close(EndReason::kExit)) return false;
  if (activity_) activity_->stop();
  tracer_->end();
  return tracer_->planner_ended();
}

bool Recording::detach(bool programs_thread) noexcept {
  if (!collector_->close(EndReason::kDetach)) return false;
  energy_.await_end(kMostForEnergy);
  if (activity_) activity_->end();
  const bool for_good = tracer_->end_and_finalize(programs_thread);
  if (activity_) activity_->ended(for_good);
  return tracer_->planner_ended();
}

}  // namespace flopinj
