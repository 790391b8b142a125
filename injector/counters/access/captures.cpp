#include <injector/counters/access/captures.h>
#include <injector/process/process.h>

#include <algorithm>

namespace flopinj {

Captures::Captures(bool late, bool from_inside)
    : count_(late ? 1 : 0),
      unknown_until_ns_(late ? monotonic_ns() + (from_inside ? 0 : kUnknownForNs) : 0),
      believes_(late && from_inside),
      unknown_at_most_until_ns_(monotonic_ns() + kUnknownAtMostNs) {}

void Captures::seen(bool made_node) {
  uint64_t until = unknown_until_ns_.load(std::memory_order_relaxed);
  if (until == 0) return;
  const uint64_t now = monotonic_ns();
  if (made_node) {
    const uint64_t longer = std::min(now + kUnknownForNs, unknown_at_most_until_ns_);
    unknown_until_ns_.compare_exchange_strong(until, std::max(until, longer));
  } else if (now >= until && unknown_until_ns_.compare_exchange_strong(until, 0)) {
    count_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void Captures::beginning(CallFrame& frame) { frame.raise(count_); }

bool Captures::begun(CallFrame& frame, CUcontext context, CUstream stream) {
  const bool own = stream == CU_STREAM_PER_THREAD;
  const MutexLock lock(mutex_);
  frame.stay_raised();
  if (captured_ == kMost) return false;
  streams_[captured_++] = {context, stream, own ? std::this_thread::get_id() : std::thread::id{}};
  return true;
}

template <class Matches>
void Captures::drop(Matches matches) {
  const MutexLock lock(mutex_);
  const auto end = streams_.begin() + static_cast<std::ptrdiff_t>(captured_);
  const auto left =
      static_cast<size_t>(std::remove_if(streams_.begin(), end, matches) - streams_.begin());
  count_.fetch_sub(static_cast<uint32_t>(captured_ - left), std::memory_order_seq_cst);
  captured_ = left;
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
