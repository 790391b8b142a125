#include <collector/identity/mutex.h>
#include <collector/trace/sink/trace_file.h>
#include <injector/activity.h>
#include <injector/process/command_line.h>
#include <injector/process/edge.h>
#include <injector/process/helper_threads.h>
#include <injector/process/log.h>
#include <injector/process/process.h>
#include <injector/process/run_watch.h>
#include <injector/process/this_thread.h>
#include <injector/session.h>
#include <injector/tracer.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

namespace flopinj {
namespace {

struct Session {
  Edge edge;
  std::unique_ptr<Collector> collector;
  std::optional<Activity> activity;
  std::optional<Tracer> tracer;
  std::function<void(const RecordingSummary&)> closing;  // set before the writer starts
  bool start_tried = false;
};

// The mutex is never destroyed, and a forked child begins with a fresh one.
union Leaked {
  constexpr Leaked() : mutex{} {}
  ~Leaked() {}
  Mutex mutex;
};
constinit Leaked g_leaked;
// The session under construction or in use. Leaked on purpose, see session.h.
Session* g_session FLOPINJ_GUARDED_BY(g_leaked.mutex) = nullptr;
// For good: switched off, or we are a child of a recording process.
bool g_off FLOPINJ_GUARDED_BY(g_leaked.mutex) = false;
std::atomic<Edge*> g_edge{nullptr};
std::atomic<Edge*> g_recording{nullptr};
std::atomic<pid_t> g_recorder{0};  // the process that began to record

// Launches are no longer ours: windows are closed, their counters read, our other threads ended.
void let_go(Session& session) {
  session.tracer->disable();
  g_recording.store(nullptr);
  // From now on flush() takes all there is.
  if (session.activity) session.activity->finish();
}

// On the writer's thread, the last that is left to end.
bool end_with_program(Session& session) {
  if (recording_edge() == nullptr || !only_helpers_left()) return false;
  let_go(session);
  return true;
}

CollectorHooks hooks_for(Session& session) {
  CollectorHooks hooks;
  hooks.thread_started = [] { count_helper_thread("flopinj-writer"); };
  hooks.flush_times = [&session] {
    if (session.activity) session.activity->flush();
  };
  hooks.program_ended = [&session] { return end_with_program(session); };
  hooks.activity_lost = [&session] { return session.activity ? session.activity->lost() : 0; };
  hooks.now_ns = [&session] { return session.edge.now_ns(); };
  hooks.thread_cpu_ns = thread_cpu_ns;
  hooks.thread_name = thread_name;
  hooks.log_error = [](std::string_view line) { log::error(line); };
  hooks.log_info = [](std::string_view line) { log::info(line); };
  hooks.closed = [&session](const RecordingSummary& summary) {
    if (session.closing) session.closing(summary);
  };
  return hooks;
}

std::unique_ptr<Session> make_session() {
  auto session = std::make_unique<Session>();
  std::vector<std::string> problems;
  session->edge.settings = read_settings(environ, problems);
  const Settings& settings = session->edge.settings;
  log::set_level(settings.log_level);
  for (const auto& problem : problems) log::warn(problem);
  if (settings.mode == Mode::kOff) return nullptr;

  CollectorConfig config;
  config.level = settings.level;
  config.expect_times = settings.mode != Mode::kCount;
  config.flush_period_ms = settings.flush_ms;
  config.scheduler.budget = settings.budget_percent / 100;  // 0 is without limit for both
  config.scheduler.until_covered = settings.until_covered_percent / 100;
  config.scheduler.every_launch = settings.mode == Mode::kFull;
  config.never_measure = settings.never_measure;
  session->collector = std::make_unique<Collector>(config, hooks_for(*session));
  session->edge.collector = session->collector.get();
  return session;
}

// In a forked child. Only async-signal-safe steps and plain stores: other threads of the parent do
// not exist here, and may have held any lock.
void forget_after_fork() noexcept FLOPINJ_UNCHECKED_LOCKS {
  const bool was_recording = g_recording.exchange(nullptr) != nullptr;
  g_edge.store(nullptr);
  if (was_recording) {
    // CUDA cannot be used in a child of a process that has initialised it; what the parent recorded
    // stays the parent's.
    g_session->collector->abandon_after_fork();
    g_off = true;
  } else {
    g_session = nullptr;  // a child that initialises CUDA itself gets a session of its own
  }
  new (&g_leaked.mutex) Mutex;
  forget_threads();
}

void stop_at_exit() { stop_session(EndReason::kExit); }

// The writer asks for the last times, writes what is left and the End packet; then CUPTI is let go.
// A writer that did not end may be inside CUPTI, which is then not called any more.
void close(EndReason reason) noexcept {
  try {
    const RecursionGuard guard;
    const MutexLock lock(g_leaked.mutex);
    if (recording_edge() == nullptr) return;
    let_go(*g_session);
    if (!g_session->collector->close(reason)) return;
    if (g_session->activity) g_session->activity->stop();
    g_session->tracer->end();
  } catch (...) {  // nothing of ours may keep the program from ending
  }
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

// Programs are told of one library for each interface. Where NVTX's is another, or none, there are
// launches and no ranges.
void check_nvtx_variable(Collector& collector) {
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
  collector.diagnostic(Severity::kWarning, "nvtx.other_library", line);
}

// CUPTI is found and subscribed to. False, with one line in `error`; then nothing is left behind.
bool connect(Session& session, std::string& error) {
  Edge& edge = session.edge;
  if (load_cupti(edge.settings.cupti, edge.cuda, edge.cupti, error)) {
    session.tracer.emplace(edge);
    if (session.tracer->subscribe(error)) {
      if (read_version(edge.cupti, error)) return true;
      session.tracer->end();
    }
  }
  // The driver calls us before it looks for devices.
  if (!has_gpu(edge.cuda))
    error = "there is no GPU here (no device file that the driver could open)";
  return false;
}

bool start(Session& session) {
  Edge& edge = session.edge;
  const uint64_t began = monotonic_ns();
  const auto refuse = [&edge](const std::string& why) {
    log::error(why + "; the program runs unprofiled");
    tell_watcher(edge.settings, RunEvent::kRefused, {});
    return false;
  };

  std::string error;
  load_cuda(edge.cuda);
  ProcessInfo process = describe_process();
  process.simulated = edge.cuda.simulated;
  process.driver_version = driver_version(edge.cuda);
  process.mode = name_of(edge.settings.mode);
  process.counters = reads_counters(edge.settings.mode);
  process.measures = edge.measures =
      process.counters && edge.settings.measure_ranks.contains(process.rank);
  process.budget_percent = edge.settings.budget_percent;
  if (edge.settings.no_command_line)
    process.command_line.clear();
  else
    hide_secrets(process.command_line);
  if (!connect(session, error)) return refuse(error);
  process.cupti_version = edge.cupti.version;
  process.clock_trace_ns = edge.now_ns();
  OpenedTrace trace = open_output(edge.settings, process);
  if (!trace.sink) {
    session.tracer->end();
    return refuse(trace.error);
  }
  if (!trace.notice.empty()) log::warn(trace.notice);
  tell_watcher(edge.settings, RunEvent::kRecording, trace.name);

  if (edge.settings.mode != Mode::kCount) {
    session.activity.emplace(edge);
    if (!session.activity->start(error)) {
      session.activity.reset();
      log::warn(error + "; launches are counted without times");
      session.collector->diagnostic(Severity::kWarning, "cupti.activity", error);
    }
  }
  if (process.counters && !process.measures)
    log::info("rank " + std::to_string(process.rank) +
              " reads no counters: launches are counted and timed, others measure "
              "(FLOPINJ_MEASURE_RANKS)");
  if (edge.measures && !edge.cupti.range_profiler) {
    const std::string why =
        edge.cupti.path + " has no " + edge.cupti.missing +
        ": no counters are read, only launches and times; CUPTI 12.6 or later has them";
    log::warn(why);
    session.collector->diagnostic(Severity::kWarning, "cupti.no_range_profiler", why);
  }

  check_nvtx_variable(*session.collector);
  session.closing = closing_words(edge.settings, process, {trace.name, trace.others});
  if (!session.collector->start(std::move(trace.sink), process)) {
    session.tracer->end();
    if (session.activity) session.activity->stop();
    return refuse("cannot start a thread");
  }
  g_recorder = getpid();
  g_recording.store(&edge, std::memory_order_release);
  if (!session.tracer->enable(error)) {
    g_recording.store(nullptr);
    session.tracer->end();
    session.collector->diagnostic(Severity::kError, "cupti.callbacks", error);
    session.collector->close(EndReason::kFailure);
    if (session.activity) session.activity->stop();
    return refuse(error);
  }
  std::atexit(stop_at_exit);
  std::at_quick_exit(stop_at_exit);
  session.collector->set_startup_ns(monotonic_ns() - began);
  log::info({"recording to ", trace.name});
  return true;
}

}  // namespace

uint64_t Edge::now_ns() const {
  uint64_t now = 0;
  if (cupti.timestamp(&now) == CUPTI_SUCCESS) return now;
  return realtime_ns();
}

Edge* recording_edge() noexcept { return g_recording.load(std::memory_order_acquire); }

Edge* session_edge() noexcept {
  if (Edge* edge = g_edge.load(std::memory_order_acquire); edge != nullptr) return edge;
  try {
    const MutexLock lock(g_leaked.mutex);
    if (g_off) return nullptr;
    if (g_session == nullptr) {
      static const int registered = pthread_atfork(nullptr, nullptr, forget_after_fork);
      static_cast<void>(registered);
      g_session = make_session().release();
      if (g_session == nullptr) {
        g_off = true;
        return nullptr;
      }
    }
    g_edge.store(&g_session->edge, std::memory_order_release);
    return &g_session->edge;
  } catch (...) {
    return nullptr;
  }
}

bool start_session() noexcept {
  if (session_edge() == nullptr) return false;
  try {
    const MutexLock lock(g_leaked.mutex);
    if (g_session == nullptr || g_session->start_tried) return recording_edge() != nullptr;
    g_session->start_tried = true;
    return start(*g_session);
  } catch (const std::exception& e) {
    log::error({"cannot start: ", e.what(), "; the program runs unprofiled"});
    return false;
  }
}

// exit() in a signal handler is not allowed, and done all the same. The signal may have interrupted
// us or CUPTI on this thread, with a lock held that nobody can give back. What is surely so inside
// is left at once; else the end is tried on another thread, and waited for only so long. Up to
// flush_ms of the trace may then be missing.
void stop_session(EndReason reason) noexcept {
  constexpr auto kMostInHandler = std::chrono::seconds(2);
  // No handler of ours has run in a child of a bare clone.
  if (recording_edge() == nullptr || getpid() != g_recorder) return;
  if (RecursionGuard::inside() || launching()) return;
  if (!below_signal_handler()) return close(reason);
  try {
    run_aside([reason] { close(reason); }, kMostInHandler);
  } catch (...) {  // no memory: what was flushed is there
  }
}

}  // namespace flopinj
