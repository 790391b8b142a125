#include <injector/counters/access/waiting_streams.h>
#include <injector/process/process.h>

#include <algorithm>

namespace flopinj {
namespace {

// The one that waits for the others has two names.
CUstream name_of(CUstream stream) { return stream != nullptr ? stream : CU_STREAM_LEGACY; }

bool is_own(CUstream stream, bool per_thread) {
  return stream == CU_STREAM_PER_THREAD || (per_thread && stream == nullptr);
}

}  // namespace

WaitingStreams::Stream* WaitingStreams::find(CUstream handle) noexcept {
  const std::span<Stream> all = streams();
  const auto at = std::ranges::find(all, handle, &Stream::handle);
  return at != all.end() ? &*at : nullptr;
}

bool WaitingStreams::add(CUstream stream, bool per_thread) noexcept {
  const bool own = is_own(stream, per_thread);
  const MutexLock lock(mutex_);
  any_.store(true, std::memory_order_seq_cst);
  drains_.made();
  const uint64_t work = added_.load(std::memory_order_relaxed) + 1;
  added_.store(work, std::memory_order_release);
  if (Stream* const known = own ? nullptr : find(name_of(stream))) {
    known->work = work;
    return true;
  }
  if (own || count_ == kMost) {
    lost_ = work;
    return own;
  }
  streams_[count_++] = {name_of(stream), work};
  return true;
}

template <class Matches>
void WaitingStreams::forget(Matches matches) {
  const std::span<Stream> all = streams();
  count_ = static_cast<size_t>(std::remove_if(all.begin(), all.end(), matches) - all.begin());
}

void WaitingStreams::look_at_end(uint64_t call_ns) {
  if (lost_ != 0 || count_ != 0 || !any_.load(std::memory_order_relaxed)) return;
  any_.store(false, std::memory_order_seq_cst);
  if (call_ns != 0) {
    drains_.ended_in_call(monotonic_ns(), call_ns);
    come_and_go_.store(true, std::memory_order_relaxed);
  } else {
    drains_.ended(monotonic_ns());
  }
}

void WaitingStreams::stream_ended(CUstream stream, bool per_thread, uint64_t work,
                                  uint64_t call_ns) {
  if (is_own(stream, per_thread)) return;
  const MutexLock lock(mutex_);
  forget([&](const Stream& s) { return s.handle == name_of(stream) && s.work <= work; });
  look_at_end(call_ns);
}

void WaitingStreams::all_ended(uint64_t work, uint64_t call_ns) {
  const MutexLock lock(mutex_);
  forget([&](const Stream& s) { return s.work <= work; });
  if (lost_ <= work) lost_ = 0;
  look_at_end(call_ns);
}

bool WaitingStreams::ask(const CudaApi& cuda) {
  std::array<Stream, kMost> asked;
  size_t count = 0;
  {
    const MutexLock lock(mutex_);
    std::ranges::copy(streams(), asked.begin());
    count = count_;
  }
  const auto unfinished = [&](const Stream& s) {
    return cuda.StreamQuery == nullptr || cuda.StreamQuery(s.handle) == CUDA_ERROR_NOT_READY;
  };
  const auto end = std::remove_if(asked.begin(), asked.begin() + count, unfinished);
  const std::span<const Stream> finished(asked.begin(), end);
  const MutexLock lock(mutex_);
  forget([&](const Stream& s) {
    return std::ranges::any_of(
        finished, [&](const Stream& f) { return f.handle == s.handle && f.work == s.work; });
  });
  look_at_end(call_ns_.load(std::memory_order_relaxed));
  return any();
}

bool WaitingStreams::holds(CUstream stream) const {
  if (!any_.load(std::memory_order_relaxed)) return false;
  const MutexLock lock(mutex_);
  return std::ranges::find(streams(), stream, &Stream::handle) != streams().end();
}

void WaitingStreams::stream_destroying(CUstream stream) {
  const MutexLock lock(mutex_);
  const Stream* const going = find(stream);
  if (going == nullptr) return;
  lost_ = std::max(lost_, going->work);
  forget([&](const Stream& s) { return s.handle == stream; });
}

void WaitingStreams::clear() {
  const MutexLock lock(mutex_);
  count_ = 0;
  lost_ = 0;
  drains_ = {};
  come_and_go_.store(false, std::memory_order_relaxed);
  any_.store(false, std::memory_order_seq_cst);
}

uint64_t WaitingStreams::may_wait_ns(uint64_t now_ns) {
  const MutexLock lock(mutex_);
  return lost_ != 0 ? 0 : drains_.may_wait_ns(now_ns);
}

void WaitingStreams::waited(uint64_t now_ns, uint64_t took_ns, bool in_vain) {
  const MutexLock lock(mutex_);
  drains_.waited(now_ns, took_ns, in_vain);
}

bool WaitingStreams::may_ask(uint64_t now_ns, uint64_t call_ns, bool due) const {
  if (call_ns != 0 && !due && now_ns > wanted_ns_.load(std::memory_order_relaxed) + kWantedForNs)
    return false;
  const MutexLock lock(mutex_);
  if (lost_ != 0) return false;  // no answer would help
  return now_ns >= ask_at_ns_[call_ns != 0 ? 1 : 0].load(std::memory_order_relaxed) ||
         call_ns >= kTimesInCall * asking_ns_.load(std::memory_order_relaxed);
}

void WaitingStreams::was_asked(uint64_t now_ns, uint64_t took_ns, uint64_t call_ns, bool some) {
  asking_ns_.store(took_ns, std::memory_order_relaxed);
  if (some)
    ask_at_ns_[call_ns != 0 ? 1 : 0].store(
        now_ns + std::clamp(kTimesOfAsking * took_ns, kAskEveryNs, kMostUnaskedNs),
        std::memory_order_relaxed);
}

}  // namespace flopinj
