#include <injector/counters/waiting_streams.h>

#include <algorithm>

namespace flopinj {

void WaitingStreams::add(CUstream stream, bool per_thread) {
  Stream added{stream, {}};
  if (per_thread && stream == nullptr) added.handle = CU_STREAM_PER_THREAD;
  if (added.handle == CU_STREAM_PER_THREAD) added.owner = std::this_thread::get_id();
  const MutexLock lock(mutex_);
  const auto same = [&](const Stream& s) {
    return s.handle == added.handle && s.owner == added.owner;
  };
  if (streams_.size() < kMostStreams && std::none_of(streams_.begin(), streams_.end(), same))
    streams_.push_back(added);
  any_.store(true, std::memory_order_seq_cst);
}

bool WaitingStreams::unfinished(const CudaApi& cuda) {
  if (calls_.load(std::memory_order_seq_cst) != 0) return true;
  if (!any_.load(std::memory_order_seq_cst)) return false;
  const MutexLock lock(mutex_);
  if (streams_.size() == kMostStreams) return true;
  const auto finished = [&](const Stream& s) {
    if (s.owner != std::thread::id{} && s.owner != std::this_thread::get_id()) return false;
    return cuda.StreamQuery != nullptr && cuda.StreamQuery(s.handle) != CUDA_ERROR_NOT_READY;
  };
  std::erase_if(streams_, finished);
  if (streams_.empty()) any_.store(false, std::memory_order_seq_cst);
  return !streams_.empty();
}

void WaitingStreams::stream_destroying(CUstream stream) {
  if (!any_.load(std::memory_order_relaxed)) return;
  const MutexLock lock(mutex_);
  std::erase_if(streams_, [&](const Stream& s) { return s.handle == stream; });
}

void WaitingStreams::clear() {
  const MutexLock lock(mutex_);
  streams_.clear();
  any_.store(false, std::memory_order_seq_cst);
}

}  // namespace flopinj
