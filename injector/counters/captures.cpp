#include <injector/counters/captures.h>

namespace flopinj {

bool Captures::holds(const CudaApi& cuda, CUstream stream, bool per_thread) const {
  if (!any() || cuda.StreamIsCapturing == nullptr) return false;
  if (stream == nullptr && per_thread) stream = CU_STREAM_PER_THREAD;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return cuda.StreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void Captures::beginning() { count_.fetch_add(1, std::memory_order_seq_cst); }

void Captures::not_begun() { count_.fetch_sub(1, std::memory_order_seq_cst); }

void Captures::begun(CUcontext context, CUstream stream) {
  const bool own = stream == CU_STREAM_PER_THREAD;
  const MutexLock lock(mutex_);
  streams_.push_back({context, stream, own ? std::this_thread::get_id() : std::thread::id{}});
}

template <class Matches>
void Captures::drop(Matches matches) {
  const MutexLock lock(mutex_);
  count_.fetch_sub(static_cast<uint32_t>(std::erase_if(streams_, matches)),
                   std::memory_order_seq_cst);
}

void Captures::ended(CUcontext context, CUstream stream) {
  const bool own = stream == CU_STREAM_PER_THREAD;
  drop([&](const Captured& c) {
    return c.stream == stream &&
           (!own || (c.context == context && c.thread == std::this_thread::get_id()));
  });
}

void Captures::stream_destroying(CUstream stream) {
  drop([&](const Captured& c) { return c.stream == stream && stream != CU_STREAM_PER_THREAD; });
}

void Captures::context_destroying(CUcontext context) {
  drop([&](const Captured& c) { return c.context == context; });
}

}  // namespace flopinj
