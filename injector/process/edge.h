// What every part of the injector works with. Owned by the Session; alive until the process ends.
#pragma once
#include <collector/collector.h>
#include <injector/process/settings.h>
#include <injector/vendor/cuda_api.h>
#include <injector/vendor/cupti_api.h>

#include <cstdint>

namespace flopinj {

struct Edge {
  Settings settings;
  bool measures = false;  // counters are read in this process
  CuptiApi cupti;
  CudaApi cuda;
  Collector* collector = nullptr;
  uint64_t now_ns() const;  // the trace's clock: CUPTI's time stamp, else CLOCK_REALTIME
};

// The session's, made at the first call by whichever entry point comes first. Null when memory is
// short or recording is off for good. Defined by the session.
Edge* session_edge() noexcept;
// Null unless a session is recording. One acquire load.
Edge* recording_edge() noexcept;

}  // namespace flopinj
