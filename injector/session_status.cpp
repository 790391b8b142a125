#include <collector/identity/mutex.h>
#include <injector/process/edge.h>
#include <injector/process/never_destroyed.h>
#include <injector/process/process.h>
#include <injector/session_status.h>

#include <new>
#include <utility>

namespace flopinj {
namespace {

using State = SessionStatus::State;

struct Shown {
  Mutex mutex;
  State state FLOPINJ_GUARDED_BY(mutex) = State::kDormant;
  uint32_t recordings FLOPINJ_GUARDED_BY(mutex) = 0;
  uint32_t kept FLOPINJ_GUARDED_BY(mutex) = 0;
  // Of the current or last recording.
  std::unique_ptr<const std::string> output FLOPINJ_GUARDED_BY(mutex);
  Mode mode FLOPINJ_GUARDED_BY(mutex) = Mode::kOff;
  RecordingProgress progress FLOPINJ_GUARDED_BY(mutex);
  uint64_t began_ns FLOPINJ_GUARDED_BY(mutex) = 0;
  Collector* collector FLOPINJ_GUARDED_BY(mutex) = nullptr;  // of the current one
};
constinit NeverDestroyed<Shown> g_shown;
Shown& shown() { return g_shown.value; }

void show(State state) noexcept {
  const MutexLock lock(shown().mutex);
  shown().state = state;
}

}  // namespace

void show_begun(std::unique_ptr<const std::string> output, Mode mode, uint64_t began_monotonic_ns,
                Collector& collector) noexcept {
  const MutexLock lock(shown().mutex);
  shown().state = State::kRecording;
  ++shown().recordings;
  shown().output = std::move(output);
  shown().mode = mode;
  shown().began_ns = began_monotonic_ns;
  shown().collector = &collector;
}

void show_stopping() noexcept { show(State::kStopping); }
void show_dormant() noexcept { show(State::kDormant); }

void show_closed() noexcept {
  const MutexLock lock(shown().mutex);
  shown().progress = shown().collector->progress();
  shown().collector = nullptr;
}

void show_kept() noexcept {
  const MutexLock lock(shown().mutex);
  ++shown().kept;
}

// Another thread of the parent may have held the lock.
void forget_status_after_fork() noexcept { new (&g_shown.value) Shown; }

SessionStatus session_status() {
  const MutexLock lock(shown().mutex);
  SessionStatus status;
  status.state = may_record_later() ? shown().state : State::kOff;
  status.recordings = shown().recordings;
  status.kept = shown().kept;
  if (shown().output != nullptr) status.output = *shown().output;
  status.mode = name_of(shown().mode);
  status.progress = shown().progress;
  if (shown().collector != nullptr) {
    status.progress = shown().collector->progress();
    status.seconds = static_cast<double>(monotonic_ns() - shown().began_ns) / 1e9;
  }
  return status;
}

}  // namespace flopinj
