// What every part of the injector works with. Owned by the recording (recording.h); alive until no
// thread is inside of it any more (presence.h).
#pragma once
#include <collector/collector.h>
#include <injector/process/settings.h>
#include <injector/vendor/cuda_api.h>
#include <injector/vendor/cupti_api.h>

#include <cstdint>

namespace flopinj {

struct Edge {
  Settings settings;
  bool measures = false;          // counters are read in this process
  bool late = false;              // the recording began while the program was running
  bool in_capture_range = false;  // it ends at cuProfilerStop
  uint16_t number = 0;            // of the recording in this process
  CuptiApi cupti;
  CudaApi cuda;
  Collector* collector = nullptr;
  uint64_t now_ns() const;  // the trace's clock: CUPTI's time stamp, else CLOCK_REALTIME
};

// For use within a Visit (presence.h). Defined by the session.

// The edge of the current recording. A recording that begins with the program is made by the first
// entry point that asks. Null when memory is short, and while nothing is recorded.
Edge* session_edge() noexcept;
// Null unless one is recording. One acquire load.
Edge* recording_edge() noexcept;
// Ends the current recording soon, on a thread of ours. One store.
void end_recording_soon() noexcept;
// The program has called cuProfilerStart, which was waited for. In the callback.
void capture_range_begun() noexcept;
// False where recording is off for good.
bool may_record_later() noexcept;

}  // namespace flopinj
