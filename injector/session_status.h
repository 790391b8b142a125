// The session as a request for its status gets it, which must not wait for a recording that begins
// or ends: the phase, and what the session says here of its recordings.
#pragma once
#include <injector/process/process_state.h>

#include <cstdint>
#include <memory>
#include <string>

namespace flopinj {

struct SessionStatus {
  Phase phase = Phase::kDormant;
  uint32_t recordings = 0;  // begun so far
  uint32_t kept = 0;        // ended ones whose memory is kept, since a thread stayed inside
  // Of the current or last recording; empty where there was none.
  std::string output, mode;
  double seconds = 0;  // since the current one began
  RecordingProgress progress;
};
// On any thread.
SessionStatus session_status();

// By the session. They need no memory: a recording has its name ready before it begins.
void show_begun(std::unique_ptr<const std::string> output, Mode, uint64_t began_monotonic_ns,
                Collector&) noexcept;
// The collector that was shown is not asked any more.
void show_closed() noexcept;
void show_kept() noexcept;  // the memory of a recording that has ended

}  // namespace flopinj
