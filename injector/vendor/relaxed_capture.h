// While one lives, no call of this thread makes a stream capture of the program invalid.
//
// What we ask of the driver or of CUPTI may load a module or allocate. CUDA calls that unsafe while
// a stream is under capture: in global mode anywhere in the process, and the program's capture
// becomes invalid. A thread that is in relaxed mode may make such calls (CUDA driver API,
// cuThreadExchangeStreamCaptureMode). The thread's own mode comes back at the end.
//
// Threads: the one that made it. Two calls of the driver that touch nothing but the thread's state.
#pragma once
#include <injector/vendor/cuda_api.h>

namespace flopinj {

class RelaxedCapture {
 public:
  explicit RelaxedCapture(const CudaApi& cuda) : exchange_(cuda.ThreadExchangeStreamCaptureMode) {
    if (exchange_ != nullptr && exchange_(&other_) != CUDA_SUCCESS) exchange_ = nullptr;
  }
  ~RelaxedCapture() {
    if (exchange_ != nullptr) exchange_(&other_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  decltype(CudaApi::ThreadExchangeStreamCaptureMode) exchange_;
  CUstreamCaptureMode other_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then the thread's own
};

}  // namespace flopinj
