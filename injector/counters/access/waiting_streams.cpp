#include <injector/counters/access/waiting_streams.h>
#include <injector/counters/access/with_context.h>
#include <injector/process/process.h>
#include <injector/vendor/relaxed_capture.h>

#include <algorithm>

namespace flopinj {

// Null where the driver has none: then the end of the work is not known.
CUevent WaitingStreams::event_behind(const CudaApi& cuda, CUcontext context, CUstream stream) {
  if (cuda.EventCreate == nullptr || cuda.EventRecord == nullptr || cuda.EventQuery == nullptr ||
      cuda.EventDestroy == nullptr)
    return nullptr;
  const RelaxedCapture relaxed(cuda);
  const WithContext current(cuda, context);
  CUevent event = nullptr;
  if (!current || cuda.EventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return nullptr;
  if (cuda.EventRecord(event, stream) == CUDA_SUCCESS) return event;
  cuda.EventDestroy(event);
  return nullptr;
}

WaitingStreams::Stream* WaitingStreams::find(CUstream handle) noexcept {
  Stream* const end = streams_.data() + count_;
  Stream* const at = std::ranges::find(streams_.data(), end, handle, &Stream::handle);
  return at != end ? at : nullptr;
}

bool WaitingStreams::add(const CudaApi& cuda, CUcontext context, CUstream stream, bool per_thread) {
  const bool own = stream == CU_STREAM_PER_THREAD || (per_thread && stream == nullptr);
  Stream added{stream != nullptr ? stream : CU_STREAM_LEGACY, nullptr};
  if (own) added = {nullptr, event_behind(cuda, context, CU_STREAM_PER_THREAD)};
  const MutexLock lock(mutex_);
  any_.store(true, std::memory_order_seq_cst);
  drains_.made();
  if (!own && find(added.handle) != nullptr) return !lost_;
  if (count_ == kMost) forget_finished(cuda);
  if (count_ == kMost || (own && added.behind == nullptr)) {
    if (added.behind != nullptr) cuda.EventDestroy(added.behind);
    lost_ = true;
    return false;
  }
  streams_[count_++] = added;
  return true;
}

bool WaitingStreams::unfinished(const CudaApi& cuda, uint64_t call_ns) {
  if (calls_.load(std::memory_order_seq_cst) != 0) return true;
  if (!any_.load(std::memory_order_seq_cst)) return false;
  const MutexLock lock(mutex_);
  forget_finished(cuda);
  if (lost_ || count_ != 0) return true;
  any_.store(false, std::memory_order_seq_cst);
  if (call_ns != 0) {
    drains_.ended_in_call(monotonic_ns(), call_ns);
    come_and_go_.store(true, std::memory_order_relaxed);
  } else {
    drains_.ended(monotonic_ns());
  }
  return false;
}

bool WaitingStreams::in_flight(const CudaApi& cuda, uint64_t call_ns, uint64_t& cost_ns) {
  if (calls_.load(std::memory_order_seq_cst) != 0) return true;
  if (!any_.load(std::memory_order_seq_cst)) return false;
  std::atomic<uint64_t>& ask_at_ns = ask_at_ns_[call_ns != 0 ? 1 : 0];
  const uint64_t began = monotonic_ns();
  if (began < ask_at_ns.load(std::memory_order_relaxed) &&
      call_ns < kTimesInCall * asking_ns_.load(std::memory_order_relaxed))
    return true;
  const bool some = unfinished(cuda, call_ns);
  const uint64_t ended = monotonic_ns();
  asking_ns_.store(ended - began, std::memory_order_relaxed);
  if (some)
    ask_at_ns.store(
        ended + std::clamp(kTimesOfAsking * (ended - began), kAskEveryNs, kMostUnaskedNs),
        std::memory_order_relaxed);
  cost_ns += ended - began;
  return some;
}

uint64_t WaitingStreams::may_wait_ns(uint64_t now_ns) {
  const MutexLock lock(mutex_);
  return lost_ ? 0 : drains_.may_wait_ns(now_ns);
}

void WaitingStreams::waited(uint64_t now_ns, uint64_t took_ns, bool in_vain) {
  const MutexLock lock(mutex_);
  drains_.waited(now_ns, took_ns, in_vain);
}

void WaitingStreams::forget_finished(const CudaApi& cuda) {
  const RelaxedCapture relaxed(cuda);
  const auto finished = [&](const Stream& s) {
    if (s.behind == nullptr)
      return cuda.StreamQuery != nullptr && cuda.StreamQuery(s.handle) != CUDA_ERROR_NOT_READY;
    if (cuda.EventQuery(s.behind) == CUDA_ERROR_NOT_READY) return false;
    cuda.EventDestroy(s.behind);
    return true;
  };
  Stream* const begin = streams_.data();
  count_ = static_cast<size_t>(std::remove_if(begin, begin + count_, finished) - begin);
}

bool WaitingStreams::stream_destroying(const CudaApi& cuda, CUcontext context, CUstream stream) {
  if (stream == nullptr || !any_.load(std::memory_order_relaxed)) return true;
  const MutexLock lock(mutex_);
  // Of another context, then, which may be about to be destroyed: none of its streams is asked.
  if (find(stream) == nullptr) return true;
  forget_finished(cuda);
  Stream* const going = find(stream);
  if (going == nullptr) return true;
  *going = {nullptr, event_behind(cuda, context, stream)};
  if (going->behind != nullptr) return true;
  *going = streams_[--count_];
  lost_ = true;
  return false;
}

// The events went with it.
void WaitingStreams::clear() {
  const MutexLock lock(mutex_);
  count_ = 0;
  lost_ = false;
  drains_ = {};
  come_and_go_.store(false, std::memory_order_relaxed);
  any_.store(false, std::memory_order_seq_cst);
}

}  // namespace flopinj
