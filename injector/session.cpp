#include <collector/identity/mutex.h>
#include <injector/nvtx.h>
#include <injector/process/capture_range.h>
#include <injector/process/control_server.h>
#include <injector/process/helper_threads.h>
#include <injector/process/log.h>
#include <injector/process/never_destroyed.h>
#include <injector/process/presence.h>
#include <injector/process/process.h>
#include <injector/process/run_watch.h>
#include <injector/process/this_thread.h>
#include <injector/recording.h>
#include <injector/requests.h>
#include <injector/session.h>
#include <injector/session_status.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace flopinj {
namespace {

// kOpen: whoever comes first makes the recording that begins with the program. kIdle: only
// start_recording() makes one. kOff: for good, switched off or a child of a recording process.
enum class Life : uint8_t { kOpen, kIdle, kOff };

// Order of locks: changing, making.
struct Session {
  Mutex changing;  // held while a recording starts or ends, which may wait for visits to end
  // The current one. Leaked where the program ends with it, see session.h.
  Recording* recording FLOPINJ_GUARDED_BY(changing) = nullptr;
  bool start_tried FLOPINJ_GUARDED_BY(changing) = false;
  Mutex making;  // never held for long: a visit may wait for it
  Recording* first FLOPINJ_GUARDED_BY(making) = nullptr;  // to begin with the program
};

std::atomic<Life> g_life{Life::kOpen};
std::atomic<Edge*> g_edge{nullptr};
std::atomic<Edge*> g_recording{nullptr};
std::atomic<pid_t> g_recorder{0};  // the process that began to record
std::atomic<pid_t> g_exiting{0};   // the last one whose exit() has come to us
std::atomic<bool> g_no_control{false};
std::atomic<uint64_t> g_start_ns{0}, g_stop_ns{0};  // when a recording is to begin and to end
std::atomic<bool> g_ends_itself{false};             // the current one, by its launches
std::atomic<bool> g_range_awaited{false};           // --capture-range
// One that begins or ends, has a trace, and does not leave it as it is. Whoever takes it may use
// it: exit(), which then leaves it, or the thread that holds `changing`, which then may free it.
std::atomic<Recording*> g_unsettled{nullptr};

// In so many seconds; 0: never.
uint64_t due_in(double seconds) {
  return seconds > 0 ? monotonic_ns() + static_cast<uint64_t>(seconds * 1e9) : 0;
}

// Never destroyed, and a forked child begins with a fresh one.
constinit NeverDestroyed<Session> g_session;
Session& session() { return g_session.value; }

// Launches are no longer ours.
void let_go(Recording& recording) {
  recording.let_go();
  g_recording.store(nullptr);
}

// On the writer's thread, the last that is left to end.
bool end_with_program() FLOPINJ_UNCHECKED_LOCKS {
  if (recording_edge() == nullptr || !only_helpers_left()) return false;
  let_go(*session().recording);  // nobody is left who could end it
  return true;
}

std::unique_ptr<Recording> make_recording(const Settings& settings, Recording::Begin begin) {
  static std::atomic<uint16_t> made{0};
  auto recording = std::make_unique<Recording>(settings, begin, end_with_program);
  recording->edge().number = made.fetch_add(1, std::memory_order_relaxed);
  return recording;
}

// In a forked child. Only async-signal-safe steps and plain stores: other threads of the parent do
// not exist here, and may have held any lock.
void forget_after_fork() noexcept FLOPINJ_UNCHECKED_LOCKS {
  Recording* inherited = g_unsettled.exchange(nullptr);
  if (g_recording.exchange(nullptr) != nullptr) inherited = session().recording;
  g_edge.store(nullptr);
  if (inherited != nullptr) {
    // CUDA cannot be used in a child of a process that has initialised it; what the parent recorded
    // stays the parent's.
    inherited->abandon_after_fork();
    g_life = Life::kOff;
  }
  // Else a child that initialises CUDA itself gets a session of its own.
  new (&g_session.value) Session;
  forget_status_after_fork();
  forget_threads();
  g_range_awaited = false;
  forget_subscription_after_fork();
  forget_control_after_fork();
}

void register_fork_handler() {
  static const int registered = pthread_atfork(nullptr, nullptr, forget_after_fork);
  static_cast<void>(registered);
}

void stop_at_exit() { stop_session(EndReason::kExit); }

// A trace is opened only where exit() will end it: the handlers are registered, which the C library
// refuses once it has run the last one, and ours has not begun. CUPTI is loaded before, so that its
// own handlers run after ours.
bool exit_will_find(Recording& recording) noexcept FLOPINJ_REQUIRES(session().changing) {
  static bool registered = false, registered_quick = false;
  g_recorder = getpid();
  g_unsettled = &recording;
  registered = registered || std::atexit(stop_at_exit) == 0;
  registered_quick = registered_quick || std::at_quick_exit(stop_at_exit) == 0;
  return registered && registered_quick && g_exiting != getpid();
}

// The recording's memory, once no thread of the program is inside it. Where one stays inside, or a
// thread of ours may be inside CUPTI, it is kept.
void free_recording(std::unique_ptr<Recording> recording, bool ended) {
  constexpr auto kMostWait = std::chrono::seconds(5);
  g_edge.store(nullptr);
  end_epoch();
  const bool free = ended && visits_ended(kMostWait);
  drop_contexts(free);
  if (free) return;
  static_cast<void>(recording.release());
  show_kept();
}

// Publishes a recording that is prepared, for callbacks that come from enable() on.
void publish(Recording& recording) noexcept FLOPINJ_REQUIRES(session().changing) {
  Edge& edge = recording.edge();
  session().recording = &recording;
  g_edge.store(&edge, std::memory_order_release);
  g_recording.store(&edge, std::memory_order_release);
  g_start_ns = 0;
  g_stop_ns = due_in(edge.settings.duration_s);
  g_ends_itself = edge.settings.launch_count != 0 || edge.in_capture_range;
  g_range_awaited = false;
}

void unpublish() noexcept FLOPINJ_REQUIRES(session().changing) {
  g_recording.store(nullptr);
  g_ends_itself = false;
  g_stop_ns = 0;
  session().recording = nullptr;
}

// Begins `recording`, which becomes the session's. False, with one line in `error`; then it is
// freed. Memory may be short at every step: what had begun ends in any case.
bool begin(std::unique_ptr<Recording> recording, std::string& error)
    FLOPINJ_REQUIRES(session().changing) {
  constexpr const char* kEnding = "it is ending";
  Edge& edge = recording->edge();
  std::unique_ptr<const std::string> output;
  bool begun = false, to_be_found = false;
  try {
    if (recording->connect(error)) {
      to_be_found = true;
      if (!exit_will_find(*recording)) {
        error = kEnding;
      } else if (recording->open(error)) {
        output = std::make_unique<const std::string>(recording->output());
        publish(*recording);
        begun = recording->enable(error);
      }
    }
  } catch (const std::exception&) {
    begun = false;
    error = "no memory";
  }
  const bool ended = !begun && recording->give_up();
  if (to_be_found && g_unsettled.exchange(nullptr) == nullptr) {  // exit() has not waited longer
    static_cast<void>(recording.release());
    return error = kEnding, false;
  }
  if (!begun) {
    unpublish();
    free_recording(std::move(recording), ended);
    return false;
  }
  const Recording& current = *recording.release();  // published
  switch_nvtx(true);
  show_begun(std::move(output), edge.settings.mode, current.began_monotonic_ns(), *edge.collector);
  return true;
}

// The end of the program, or of the process's part in it. A recording that another thread begins or
// ends is waited for, since only that thread knows which calls to CUPTI it has made. The wait has a
// limit: after it the thread and its recording are left, and CUPTI is not called any more.
void close(EndReason reason) noexcept {
  constexpr auto kMostWait = std::chrono::seconds(10);
  try {
    const RecursionGuard guard;
    if (!session().changing.try_lock_for(kMostWait)) {
      if (Recording* const left = g_unsettled.exchange(nullptr)) left->leave();
      return;
    }
    const MutexLock lock(session().changing, std::adopt_lock);
    if (recording_edge() == nullptr) return;
    let_go(*session().recording);
    session().recording->close(reason);
  } catch (...) {  // nothing of ours may keep the program from ending
  }
}

// Recording begins later than the program.
bool waits(const Settings& settings) {
  return settings.dormant || settings.start_after_s != 0 || settings.capture_range;
}

// Made at the first call, whoever makes it. Null: nothing is to be recorded now.
Recording* make_first() FLOPINJ_REQUIRES(session().making) {
  register_fork_handler();
  std::vector<std::string> problems;
  const Settings settings = read_settings(environ, problems);
  log::set_level(settings.log_level);
  for (const auto& problem : problems) log::warn(problem);
  g_no_control = settings.no_control;
  if (settings.mode != Mode::kOff && !waits(settings))
    return make_recording(settings, Recording::Begin::kWithProgram).release();
  g_life = settings.mode == Mode::kOff ? Life::kOff : Life::kIdle;
  return nullptr;
}

// The one to begin with the program: the session's from now on, and the next one is asked for.
std::unique_ptr<Recording> take_first() {
  const MutexLock lock(session().making);
  if (g_life == Life::kOpen) g_life = Life::kIdle;
  return std::unique_ptr<Recording>(std::exchange(session().first, nullptr));
}

// Until the program calls cuProfilerStart.
void await_range(const Settings& settings) {
  g_range_awaited = true;
  if (settings.start_after_s != 0)
    log::warn("FLOPINJ_START_AFTER is ignored: with FLOPINJ_CAPTURE_RANGE the program says when");
  std::string error;
  const RecursionGuard guard;
  if (wait_for_range(settings.cupti, Tracer::callback(), error)) return;
  g_range_awaited = false;
  log::error({error, "; the program runs unprofiled"});
  tell_watcher(settings, RunEvent::kRefused, {});
}

bool gpu_found() {
  CudaApi cuda;
  load_cuda(cuda);
  return has_gpu(cuda);
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
  // Without the lock: who ends a recording holds it and waits for the caller.
  if (g_life.load(std::memory_order_acquire) != Life::kOpen) return nullptr;
  try {
    const MutexLock lock(session().making);
    if (g_life != Life::kOpen) return g_edge.load(std::memory_order_acquire);
    if (session().first == nullptr) session().first = make_first();
    if (session().first == nullptr) return nullptr;
    g_edge.store(&session().first->edge(), std::memory_order_release);
    return &session().first->edge();
  } catch (...) {
    return nullptr;
  }
}

void end_recording_soon() noexcept { g_stop_ns.store(1, std::memory_order_relaxed); }

bool may_record_later() noexcept { return g_life.load(std::memory_order_acquire) != Life::kOff; }

void start_session() noexcept {
  try {
    {
      const RecursionGuard guard;
      const Visit visit(guard);
      session_edge();
    }
    const MutexLock lock(session().changing);
    if (g_life == Life::kOff || std::exchange(session().start_tried, true)) return;
    std::unique_ptr<Recording> first = take_first();
    const ControlDuties duties{!g_no_control, answer, next_session_event_ns, do_session_events};
    if (first == nullptr) {
      std::vector<std::string> said_before;
      const Settings settings = read_settings(environ, said_before);
      if (!gpu_found()) return;
      tell_watcher(settings, RunEvent::kWaiting, {});
      if (settings.capture_range && !settings.dormant)
        await_range(settings);
      else
        g_start_ns = due_in(settings.start_after_s);
      if (duties.listens || g_start_ns != 0 || g_range_awaited) serve_control(duties);
      return;
    }
    std::string error;
    const Settings settings = first->edge().settings;
    if (!begin(std::move(first), error)) {
      log::error({error, "; the program runs unprofiled"});
      return tell_watcher(settings, RunEvent::kRefused, {});
    }
    if (duties.listens || g_stop_ns != 0 || g_ends_itself) serve_control(duties);
  } catch (const std::exception& e) {
    log::error({"cannot start: ", e.what(), "; the program runs unprofiled"});
  }
}

bool listen_session() noexcept {
  try {
    const RecursionGuard guard;
    const MutexLock lock(session().changing);
    {
      const MutexLock making(session().making);
      if (g_life == Life::kOpen && session().first == nullptr) {
        register_fork_handler();
        g_life = Life::kIdle;
      }
    }
    session().start_tried = true;
    return g_life == Life::kIdle &&
           serve_control({true, answer, next_session_event_ns, do_session_events});
  } catch (const std::exception&) {
    return false;
  }
}

// exit() in a signal handler is not allowed, and done all the same. The signal may have interrupted
// us or CUPTI on this thread, with a lock held that nobody can give back. What is surely so inside
// is left at once; else the end is tried on another thread, and waited for only so long. Up to
// flush_ms of the trace may then be missing.
void stop_session(EndReason reason) noexcept {
  constexpr auto kMostInHandler = std::chrono::seconds(2);
  g_exiting = getpid();
  // No handler of ours has run in a child of a bare clone.
  if (g_recorder != getpid()) return;
  if (recording_edge() == nullptr && g_unsettled == nullptr) return;
  if (RecursionGuard::inside() || launching()) return;
  if (!below_signal_handler()) return close(reason);
  try {
    run_aside([reason] { close(reason); }, kMostInHandler);
  } catch (...) {  // no memory: what was flushed is there
  }
}

static Outcome start(std::span<const std::string> given, Recording::Begin how) {
  const RecursionGuard guard;
  const MutexLock lock(session().changing);
  if (recording_edge() != nullptr)
    return {false, "it records already, to " + session().recording->output()};
  if (g_life != Life::kIdle) return {false, "recording is switched off in it"};
  std::vector<std::string> problems;
  Settings settings = read_settings(environ, problems);
  problems.clear();  // were said as the program began
  for (const std::string& entry : given) apply_setting(settings, entry, problems);
  if (!problems.empty()) return {false, problems.front()};
  if (settings.mode == Mode::kOff) return {false, "FLOPINJ_MODE=off records nothing"};
  std::string error;
  if (!begin(make_recording(settings, how), error)) return {false, error};
  return {true, session().recording->output()};
}

void capture_range_begun() noexcept {
  try {
    if (!g_range_awaited.exchange(false)) return;
    if (const Outcome outcome = start({}, Recording::Begin::kInCaptureRange); !outcome.done)
      log::error({outcome.text, "; the program runs unprofiled"});
  } catch (const std::exception& e) {
    log::error({"cannot start: ", e.what(), "; the program runs unprofiled"});
  }
}

Outcome start_recording(std::span<const std::string> settings) {
  return start(settings, Recording::Begin::kLater);
}

Outcome stop_recording() {
  constexpr auto kMostWaitForLaunches = std::chrono::seconds(1);
  const RecursionGuard guard;
  const MutexLock lock(session().changing);
  if (recording_edge() == nullptr) return {false, "it does not record"};
  // Taken before anything ends: from here on nothing asks for memory that must be there.
  Outcome outcome{true, session().recording->output()};
  g_ends_itself = false;
  g_stop_ns = 0;
  show_stopping();
  g_unsettled = session().recording;
  session().recording->await_captures();
  let_go(*session().recording);
  switch_nvtx(false);
  visits_ended(kMostWaitForLaunches);  // a launch that is counted already comes into the trace
  const bool ended = session().recording->close(EndReason::kDetach);
  show_closed();
  const bool ours = g_unsettled.exchange(nullptr) != nullptr;  // else exit() waits no longer
  free_recording(std::unique_ptr<Recording>(std::exchange(session().recording, nullptr)),
                 ended && ours);
  show_dormant();
  return outcome;
}

// A recording that its launches end says so by end_recording_soon(), which wakes nobody: it is
// looked after.
uint64_t next_session_event_ns() noexcept {
  constexpr uint64_t kLookEveryNs = 10'000'000;
  uint64_t next = 0;
  const auto add = [&next](uint64_t at) { next = next == 0 ? at : std::min(next, at); };
  if (const uint64_t start = g_start_ns.load(); start != 0) add(start);
  if (const uint64_t stop = g_stop_ns.load(); stop != 0) add(stop);
  if (g_ends_itself.load()) add(monotonic_ns() + kLookEveryNs);
  return next;
}

void do_session_events(uint64_t now_ns) {
  const auto due = [now_ns](std::atomic<uint64_t>& event) {
    const uint64_t at = event.load();
    return at != 0 && at <= now_ns && event.exchange(0) != 0;
  };
  if (due(g_stop_ns)) stop_recording();
  if (!due(g_start_ns)) return;
  if (const Outcome outcome = start_recording({}); !outcome.done)
    log::error({outcome.text, "; the program runs unprofiled"});
}

}  // namespace flopinj
