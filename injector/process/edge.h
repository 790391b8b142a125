// What every part of the injector works with. Owned by the recording (recording.h); alive until no
// thread is inside of it any more (presence.h).
#pragma once
#include <collector/collector.h>
#include <injector/process/process.h>
#include <injector/process/process_state.h>
#include <injector/process/settings.h>
#include <injector/vendor/cuda_api.h>
#include <injector/vendor/cupti_api.h>

#include <atomic>
#include <cstdint>

namespace flopinj {

class EnergyMeter;

struct Edge {
  Settings settings;
  bool measures = false;          // counters are read in this process
  bool late = false;              // the recording began while the program was running
  bool from_inside = false;       // the program's own request was it
  bool in_capture_range = false;  // it ends at cuProfilerStop
  uint16_t number = 0;            // of the recording in this process
  CuptiApi cupti;
  CudaApi cuda;
  Collector* collector = nullptr;
  EnergyMeter* energy = nullptr;  // null: the user wants none

  // The trace's clock: CUPTI's time stamps, where it gives none CLOCK_REALTIME. Any thread: no call
  // of CUPTI is made, so that it may be asked under a lock, and after CUPTI has been let go. One
  // that the driver keeps itself is CUPTI's, too, and does not go with CLOCK_MONOTONIC.
  uint64_t now_ns() const {
    if (own_clock.load(std::memory_order_acquire)) return cuda.clock_ns();
    return monotonic_ns() + clock_ahead_ns.load(std::memory_order_relaxed);
  }
  // Asks CUPTI how far its time stamps are ahead of CLOCK_MONOTONIC. On threads of ours, again and
  // again, for clocks drift apart.
  void set_clock() noexcept;
  std::atomic<uint64_t> clock_ahead_ns{0};
  uint64_t clock_error_ns = 0;  // what is not known of it, as set_clock() found: its thread's
  // CUPTI has met a fatal error and has finalized itself: it has no subscriber and no record of
  // ours any more, and is not called.
  std::atomic<bool> cupti_failed{false};
  // CUPTI's records of kernels are wanted; and for so many range profilers they are off, since
  // CUPTI does not have both.
  std::atomic<bool> kernel_records{false};
  std::atomic<uint32_t> kernel_records_off{0};
  std::atomic<uint32_t> kernel_records_switched{0};  // off and on, so often
  std::atomic<bool> exits_missed{false};             // CUPTI shows the ends of calls no more
  std::atomic<bool> own_clock{false};  // CudaApi::has_own_clock(), once the recording has begun
};

// For use within a Visit (presence.h).

// The edge of the recording that begins with the program, which this call makes. Null when memory
// is short, and where none begins with it. Defined by the session.
Edge* first_edge() noexcept;
// The edge of the current recording. A recording that begins with the program is made by the first
// entry point that asks. Null when memory is short, and while nothing is recorded.
inline Edge* session_edge() noexcept {
  Edge* const edge = process_state().session.edge.load(std::memory_order_acquire);
  return edge != nullptr ? edge : first_edge();
}
// Null unless one is recording. One acquire load.
inline Edge* recording_edge() noexcept {
  return process_state().session.recording.load(std::memory_order_acquire);
}
// Nothing is recorded, and no call that asks for a recording makes one. Anywhere, also outside of a
// Visit.
inline bool nothing_recorded() noexcept {
  const SessionState& session = process_state().session;
  return session.edge.load(std::memory_order_relaxed) == nullptr &&
         session.phase.load(std::memory_order_relaxed) != Phase::kOpen;
}
inline Phase session_phase() noexcept {
  return process_state().session.phase.load(std::memory_order_acquire);
}

// Defined by the session.

// Ends the current recording soon, on a thread of ours. One store.
void end_recording_soon() noexcept;
// The program has called cuProfilerStart, which was waited for. In the callback.
void capture_range_begun() noexcept;

}  // namespace flopinj
