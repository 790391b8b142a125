#include <collector/base/assert.h>
#include <injector/process/capture_range.h>
#include <injector/process/closer.h>
#include <injector/process/control_server.h>
#include <injector/process/helper_threads.h>
#include <injector/process/log.h>
#include <injector/process/presence.h>
#include <injector/process/process.h>
#include <injector/process/process_state.h>
#include <injector/process/run_watch.h>
#include <injector/process/this_thread.h>
#include <injector/recording.h>
#include <injector/requests.h>
#include <injector/session.h>
#include <injector/session_status.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace flopinj {
namespace {

SessionState& session() noexcept { return process_state().session; }

constexpr const char* kProgramEnds = "it is ending";

// All moves that a session makes, from kOpen under `making`, else under `changing`, or by the last
// thread of a process. docs/architecture.md draws them.
struct Move {
  Phase from, to;
};
constexpr std::array<Move, 5> kMoves{{
    {Phase::kOpen, Phase::kOff},           // FLOPINJ_MODE=off
    {Phase::kOpen, Phase::kDormant},       // CUDA begins; or nothing begins with it
    {Phase::kDormant, Phase::kRecording},  // CUDA begins, a request, a time, cuProfilerStart
    {Phase::kRecording, Phase::kEnding},   // the same, cuProfilerStop, the last launch, exit
    {Phase::kEnding, Phase::kDormant},     // the trace is whole, and the program goes on
}};

void move_to(Phase next) noexcept {
  std::atomic<Phase>& phase = session().phase;
  FLOPINJ_ASSERT(std::ranges::any_of(
      kMoves, [&](const Move& move) { return move.from == phase && move.to == next; }));
  phase.store(next, std::memory_order_release);
}

// In so many seconds; 0: never.
uint64_t due_in(double seconds) {
  return seconds > 0 ? monotonic_ns() + static_cast<uint64_t>(seconds * 1e9) : 0;
}

// Launches and ranges are no longer ours.
void stop_taking(Recording& recording) {
  recording.stop_taking();
  session().recording = nullptr;
  session().edge = nullptr;
}

// On the writer's thread, the last that is left to end.
bool end_with_program() FLOPINJ_UNCHECKED_LOCKS {
  if (session_phase() != Phase::kRecording || !only_helpers_left()) return false;
  move_to(Phase::kEnding);
  stop_taking(*session().current);  // no other thread is left to end it
  return true;
}

std::unique_ptr<Recording> make_recording(const Settings& settings, Recording::Begin begin) {
  static constinit std::atomic<uint16_t> made{0};
  auto recording = std::make_unique<Recording>(settings, begin, end_with_program);
  recording->edge().number = made.fetch_add(1, std::memory_order_relaxed);
  return recording;
}

// In a forked child. Only async-signal-safe steps and plain stores: other threads of the parent do
// not exist here, and may have held any lock.
void begin_anew_after_fork() noexcept FLOPINJ_UNCHECKED_LOCKS {
  const ProcessState& parents = process_state();
  const SessionState& was = parents.session;
  Recording* const inherited = was.current != nullptr ? was.current : was.unsettled.load();
  close_inherited(parents.control);
  SessionState& is = renew_process_state().session;
  forget_thread();
  is.at_exit = was.at_exit;
  is.at_quick_exit = was.at_quick_exit;
  is.no_control = was.no_control.load();
  const Phase phase = was.phase;
  is.phase = phase == Phase::kEnding ? Phase::kDormant : phase;
  // A child that initialises CUDA itself gets a session of its own. Where the parent records, it
  // cannot: CUDA is not to be used in a child of a process that has initialised it, and what the
  // parent recorded stays the parent's.
  if (inherited == nullptr) return;
  inherited->abandon_after_fork();
  is.phase = Phase::kOff;
}

void stop_at_exit() { stop_session(); }

// A trace is opened only where exit() will end it: the handlers are registered, which the C library
// refuses once it has run the last one, and ours has not begun. CUPTI is loaded before, so that its
// own handlers run after ours.
bool exit_will_find(Recording& recording) noexcept FLOPINJ_REQUIRES(session().changing) {
  SessionState& mine = session();
  mine.recorder = getpid();
  mine.unsettled = &recording;
  const bool found = session().at_exit || std::atexit(stop_at_exit) == 0;
  const bool found_quick = session().at_quick_exit || std::at_quick_exit(stop_at_exit) == 0;
  session().at_exit = found;
  session().at_quick_exit = found_quick;
  return found && found_quick && mine.exiting != getpid();
}

// The recording's memory, once no thread of the program is inside it. Where one stays inside, or a
// thread of ours may be inside CUPTI, it is kept.
void free_recording(std::unique_ptr<Recording> recording, bool ended)
    FLOPINJ_REQUIRES(session().changing) {
  constexpr auto kMostWait = std::chrono::seconds(5);
  dismiss_closer();
  session().edge = nullptr;
  end_epoch();
  const bool free = ended && visits_ended(kMostWait);
  drop_contexts(free);
  if (free) return;
  static_cast<void>(recording.release());
  show_kept();
}

// Publishes a recording that is prepared, for callbacks that come from enable() on.
void publish(Recording& recording) noexcept FLOPINJ_REQUIRES(session().changing) {
  SessionState& mine = session();
  Edge& edge = recording.edge();
  session().current = &recording;
  mine.edge = &edge;
  mine.recording = &edge;
  mine.start_ns = 0;
  mine.stop_ns = due_in(edge.settings.duration_s);
  mine.ends_itself = edge.settings.launch_count != 0 || edge.in_capture_range;
  mine.range_awaited = false;
  mine.trace_closed = false;
}

void unpublish() noexcept FLOPINJ_REQUIRES(session().changing) {
  SessionState& mine = session();
  mine.recording = nullptr;
  mine.ends_itself = false;
  mine.stop_ns = 0;
  session().current = nullptr;
}

// The end of the program, or of the process's part in it. A recording that another thread begins or
// ends is waited for, since only that thread knows which calls to CUPTI it has made. The wait has a
// limit: after it the thread and its recording are left, and CUPTI is not called any more.
void close() noexcept {
  constexpr auto kMostWait = std::chrono::seconds(10);
  try {
    const RecursionGuard guard;
    if (!session().changing.try_lock_for(kMostWait)) {
      if (Recording* const left = session().unsettled.exchange(nullptr)) left->leave();
      return;
    }
    const MutexLock lock(session().changing, std::adopt_lock);
    if (session_phase() != Phase::kRecording) return;
    move_to(Phase::kEnding);
    stop_taking(*session().current);
    session().current->close();
  } catch (...) {  // nothing of ours may keep the program from ending
  }
}

// Begins `recording`, which becomes the session's. False, with one line in `error`; then it is
// freed. Memory may be short at every step: what had begun ends in any case.
bool begin(std::unique_ptr<Recording> recording, std::string& error)
    FLOPINJ_REQUIRES(session().changing) {
  Edge& edge = recording->edge();
  static_cast<void>(below_signal_handler());  // its first call takes locks
  std::unique_ptr<const std::string> output;
  bool begun = false, to_be_found = false;
  try {
    if (recording->connect(error)) {
      if (!start_closer(close)) {
        error = "cannot start a thread";
      } else if (to_be_found = true; !exit_will_find(*recording)) {
        error = kProgramEnds;
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
  if (to_be_found &&
      session().unsettled.exchange(nullptr) == nullptr) {  // exit() has not waited longer
    static_cast<void>(recording.release());
    return error = kProgramEnds, false;
  }
  if (!begun) {
    unpublish();
    free_recording(std::move(recording), ended);
    return false;
  }
  const Recording& current = *recording.release();  // published
  show_begun(std::move(output), edge.settings.mode, current.began_monotonic_ns(), *edge.collector);
  move_to(Phase::kRecording);
  return true;
}

// Recording begins later than the program.
bool waits(const Settings& settings) {
  return settings.dormant || settings.start_after_s != 0 || settings.capture_range;
}

// At the first call that asks. Null: nothing is to be recorded now.
Recording* make_first() {
  std::vector<std::string> problems;
  const Settings settings = read_settings(environ, problems);
  log::set_level(settings.log_level);
  for (const auto& problem : problems) log::warn(problem);
  session().no_control = settings.no_control;
  if (settings.mode != Mode::kOff && !waits(settings))
    return make_recording(settings, Recording::Begin::kWithProgram).release();
  move_to(settings.mode == Mode::kOff ? Phase::kOff : Phase::kDormant);
  return nullptr;
}

// The one to begin with the program: the session's from now on, and the next one is asked for.
std::unique_ptr<Recording> take_first() {
  SessionState& mine = session();
  const MutexLock lock(mine.making);
  if (mine.phase == Phase::kOpen) move_to(Phase::kDormant);
  return std::unique_ptr<Recording>(std::exchange(mine.first, nullptr));
}

// Until the program calls cuProfilerStart.
void await_range(const Settings& settings) {
  session().range_awaited = true;
  if (settings.start_after_s != 0)
    log::warn("FLOPINJ_START_AFTER is ignored: with FLOPINJ_CAPTURE_RANGE the program says when");
  std::string error;
  const RecursionGuard guard;
  if (wait_for_range(settings.cupti, Tracer::callback(), error)) return;
  session().range_awaited = false;
  log::error({error, "; the program runs unprofiled"});
  tell_watcher(settings, RunEvent::kRefused, {});
}

bool gpu_found() {
  CudaApi cuda;
  load_cuda(cuda);
  return has_gpu(cuda);
}

// On a thread of the program's. False also in the child of a process that has begun with CUDA,
// which the driver serves no more.
bool cuda_has_begun() {
  CudaApi cuda;
  load_cuda(cuda);
  CUdevice device = 0;
  return cuda.DeviceGet != nullptr && cuda.DeviceGet(&device, 0) != CUDA_ERROR_NOT_INITIALIZED;
}

// The thread that listens, and that does what is due at a time.
bool serve(bool listens) noexcept {
  return serve_control({listens, answer, next_session_event_ns, do_session_events});
}
// Where nobody is listened to the thread is made once something is due.
bool serve_if_needed() noexcept FLOPINJ_REQUIRES(session().changing) {
  const SessionState& mine = session();
  const bool listens = !mine.no_control;
  const bool due = mine.start_ns != 0 || mine.stop_ns != 0 || mine.ends_itself;
  return (!listens && !due && !mine.range_awaited) || serve(listens);
}

}  // namespace

Edge* first_edge() noexcept {
  SessionState& mine = session();
  // Without the lock: the thread that ends a recording holds it, and waits for the caller.
  if (mine.phase.load(std::memory_order_acquire) != Phase::kOpen) return nullptr;
  try {
    const MutexLock lock(mine.making);
    if (mine.phase != Phase::kOpen) return mine.edge.load(std::memory_order_acquire);
    if (mine.first == nullptr) mine.first = make_first();
    if (mine.first == nullptr) return nullptr;
    mine.edge.store(&mine.first->edge(), std::memory_order_release);
    return &mine.first->edge();
  } catch (...) {
    return nullptr;
  }
}

void end_recording_soon() noexcept { session().stop_ns.store(1, std::memory_order_relaxed); }

bool handle_forks() noexcept {
  static constinit std::atomic<bool> handled{false};
  // Two threads may both do it: twice anew is no other than once.
  if (!handled.load(std::memory_order_acquire) &&
      pthread_atfork(nullptr, nullptr, begin_anew_after_fork) == 0)
    handled.store(true, std::memory_order_release);
  return handled.load(std::memory_order_acquire);
}

void start_session() noexcept {
  try {
    {
      const RecursionGuard guard;
      const Visit visit(guard);
      session_edge();
    }
    const MutexLock lock(session().changing);
    if (session_phase() == Phase::kOff || std::exchange(session().start_tried, true)) return;
    std::unique_ptr<Recording> first = take_first();
    if (first == nullptr) {
      std::vector<std::string> said_before;
      const Settings settings = read_settings(environ, said_before);
      if (!gpu_found()) return;
      tell_watcher(settings, RunEvent::kWaiting, {});
      if (settings.capture_range && !settings.dormant)
        await_range(settings);
      else
        session().start_ns = due_in(settings.start_after_s);
      serve_if_needed();
      return;
    }
    std::string error;
    const Settings settings = first->edge().settings;
    if (!begin(std::move(first), error)) {
      log::error({error, "; the program runs unprofiled"});
      return tell_watcher(settings, RunEvent::kRefused, {});
    }
    serve_if_needed();
  } catch (const std::exception& e) {
    log::error({"cannot start: ", e.what(), "; the program runs unprofiled"});
  }
}

// InitializeInjection does not come any more: CUDA has begun.
static void begin_late() FLOPINJ_REQUIRES(session().changing) {
  if (std::exchange(session().start_tried, true)) return;
  SessionState& mine = session();
  const MutexLock making(mine.making);
  if (mine.phase == Phase::kOpen && mine.first == nullptr) move_to(Phase::kDormant);
  std::vector<std::string> problems;
  mine.no_control = read_settings(environ, problems).no_control;
}

bool listen_session() noexcept {
  try {
    const RecursionGuard guard;
    const MutexLock lock(session().changing);
    begin_late();
    return session_phase() == Phase::kDormant && serve(true);
  } catch (const std::exception&) {
    return false;
  }
}

// Where a signal handler has interrupted us or CUPTI on this thread, a lock is held for sure that
// no thread can give back, and the end is left out. Where it has interrupted something else, the
// end is tried (process/closer.h). All that this thread does itself is async-signal-safe.
void stop_session() noexcept {
  constexpr auto kMostInHandler = std::chrono::seconds(2);
  session().exiting = getpid();
  // No handler of ours has run in a child of a bare clone.
  if (session().recorder != getpid()) return;
  if (recording_edge() == nullptr && session().unsettled == nullptr) return;
  if (!RecursionGuard::inside() && !launching()) {
    if (!below_signal_handler()) return close();
    if (ask_closer(kMostInHandler) || session().trace_closed) return;
  }
  log::error_in_handler(
      "flopinj: a signal handler has called exit(), and the call that the signal interrupted "
      "cannot "
      "be waited for: the trace lacks its end, and perhaps its last launches\n");
}

// `request`: what it has; null where the recording was asked for as the program started.
static Outcome start(const std::span<const std::string>* request, Recording::Begin how) {
  const RecursionGuard guard;
  const MutexLock lock(session().changing);
  if (session_phase() == Phase::kRecording)
    return {false, "it records already, to " + session().current->output()};
  if (session_phase() == Phase::kEnding) return {false, kProgramEnds};
  if (session_phase() != Phase::kDormant)
    return {false, "recording is switched off in it, or its parent is recorded"};
  std::vector<std::string> said_before;
  Settings settings = read_settings(environ, said_before);
  if (request != nullptr)
    if (const std::string problem = apply_request(settings, *request); !problem.empty())
      return {false, problem};
  if (settings.mode == Mode::kOff) return {false, "FLOPINJ_MODE=off records nothing"};
  std::string error;
  if (!begin(make_recording(settings, how), error)) return {false, error};
  serve_if_needed();
  return {true, session().current->output()};
}

void capture_range_begun() noexcept {
  try {
    if (!session().range_awaited.exchange(false)) return;
    if (const Outcome outcome = start(nullptr, Recording::Begin::kInCaptureRange); !outcome.done)
      log::error({outcome.text, "; the program runs unprofiled"});
  } catch (const std::exception& e) {
    log::error({"cannot start: ", e.what(), "; the program runs unprofiled"});
  }
}

Outcome start_recording(std::span<const std::string> settings, bool from_inside, Asker asker) {
  if (asker == Asker::kProgram) {
    if (!cuda_has_begun())
      return {false, "CUDA has not begun in it: it can be recorded from cuInit on"};
    const MutexLock lock(session().changing);
    begin_late();
  }
  return start(&settings, from_inside ? Recording::Begin::kFromInside : Recording::Begin::kLater);
}

Outcome stop_recording(Asker asker) {
  constexpr auto kMostWaitForLaunches = std::chrono::seconds(1);
  const RecursionGuard guard;
  const MutexLock lock(session().changing);
  if (session_phase() != Phase::kRecording) return {false, "it does not record"};
  // Taken before anything ends: from here on nothing asks for memory that must be there.
  Outcome outcome{true, session().current->output()};
  session().ends_itself = false;
  session().stop_ns = 0;
  move_to(Phase::kEnding);
  session().unsettled = session().current;
  session().current->await_quiet();
  stop_taking(*session().current);
  visits_ended(kMostWaitForLaunches);  // a launch that is counted already comes into the trace
  const bool ended = session().current->detach(asker == Asker::kProgram);
  outcome.closed = session().trace_closed;
  show_closed();
  const bool ours =
      session().unsettled.exchange(nullptr) != nullptr;  // else exit() waits no longer
  free_recording(std::unique_ptr<Recording>(std::exchange(session().current, nullptr)),
                 ended && ours);
  move_to(Phase::kDormant);
  return outcome;
}

// A recording that its launches end says so by end_recording_soon(), which wakes no thread: it is
// looked after.
uint64_t next_session_event_ns() noexcept {
  constexpr uint64_t kLookEveryNs = 10'000'000;
  uint64_t next = 0;
  const auto add = [&next](uint64_t at) { next = next == 0 ? at : std::min(next, at); };
  if (const uint64_t start = session().start_ns.load(); start != 0) add(start);
  if (const uint64_t stop = session().stop_ns.load(); stop != 0) add(stop);
  if (session().ends_itself.load()) add(monotonic_ns() + kLookEveryNs);
  return next;
}

void do_session_events(uint64_t now_ns) {
  const auto due = [now_ns](std::atomic<uint64_t>& event) {
    const uint64_t at = event.load();
    return at != 0 && at <= now_ns && event.exchange(0) != 0;
  };
  if (due(session().stop_ns)) stop_recording(Asker::kAnother);
  if (!due(session().start_ns)) return;
  if (const Outcome outcome = start(nullptr, Recording::Begin::kLater); !outcome.done)
    log::error({outcome.text, "; the program runs unprofiled"});
}

}  // namespace flopinj
