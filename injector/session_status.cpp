#include <injector/process/edge.h>
#include <injector/process/process.h>
#include <injector/process/process_state.h>
#include <injector/session_status.h>

#include <utility>

namespace flopinj {

void show_begun(std::unique_ptr<const std::string> output, Mode mode, uint64_t began_monotonic_ns,
                Collector& collector) noexcept {
  ShownState& shown = process_state().shown;
  const MutexLock lock(shown.mutex);
  ++shown.recordings;
  shown.output = std::move(output);
  shown.mode = mode;
  shown.began_ns = began_monotonic_ns;
  shown.collector = &collector;
}

void show_closed() noexcept {
  ShownState& shown = process_state().shown;
  const MutexLock lock(shown.mutex);
  shown.progress = shown.collector->progress();
  shown.collector = nullptr;
}

void show_kept() noexcept {
  ShownState& shown = process_state().shown;
  const MutexLock lock(shown.mutex);
  ++shown.kept;
}

SessionStatus session_status() {
  ShownState& shown = process_state().shown;
  const MutexLock lock(shown.mutex);
  SessionStatus status;
  status.phase = session_phase();
  status.recordings = shown.recordings;
  status.kept = shown.kept;
  if (shown.output != nullptr) status.output = *shown.output;
  status.mode = name_of(shown.mode);
  status.progress = shown.progress;
  if (shown.collector != nullptr) {
    status.progress = shown.collector->progress();
    status.seconds = static_cast<double>(monotonic_ns() - shown.began_ns) / 1e9;
  }
  return status;
}

}  // namespace flopinj
