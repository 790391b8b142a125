// When the program's threads do something, at the price of a register: ticks of the CPU's own
// clock. The writer turns them into the trace's time (HostClock).
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace flopinj {

inline uint64_t cpu_ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// What is asked; null: nothing is (--host-times). Where real time is not the trace's it is simgpu's
// clock, in nanoseconds of the trace. 0: it cannot say.
using HostTicks = uint64_t (*)() noexcept;
inline constinit std::atomic<HostTicks> host_clock{nullptr};

inline uint64_t host_ticks() noexcept {
  const HostTicks clock = host_clock.load(std::memory_order_relaxed);
  return clock != nullptr ? clock() : 0;
}

// Set again and again, and asked about times that are not long ago. One thread.
class HostClock {
 public:
  // `now_ns` is the trace's clock, `its_error_ns` how far that one may be off; it may be empty.
  HostClock(std::function<uint64_t()> now_ns, std::function<uint64_t()> its_error_ns)
      : now_ns_(std::move(now_ns)), its_error_ns_(std::move(its_error_ns)) {
    set();
  }

  void set() {
    if (host_clock.load(std::memory_order_relaxed) != cpu_ticks) return;
    Point best;
    for (int i = 0; i < kAnswers; ++i) {
      const uint64_t before = now_ns_(), ticks = cpu_ticks(), after = now_ns_();
      const uint64_t took = after - std::min(before, after);
      if (took < best.took_ns) best = {ticks, before + took / 2, took};
    }
    // The rate is taken over a stretch of time that is long beside its error.
    if (last_.ns - std::min(first_.ns, last_.ns) >= kLeastStretchNs || first_.ticks == 0)
      first_ = last_;
    last_ = best;
    error_ns_ = std::max(first_.took_ns, last_.took_ns) + (its_error_ns_ ? its_error_ns_() : 0);
  }
  // On the trace's clock; 0: not known.
  uint64_t ns(uint64_t ticks) const {
    if (ticks == 0 || host_clock.load(std::memory_order_relaxed) != cpu_ticks) return ticks;
    if (first_.ticks == 0 || last_.ticks <= first_.ticks || last_.ns < first_.ns) return 0;
    const double rate =
        static_cast<double>(last_.ns - first_.ns) / static_cast<double>(last_.ticks - first_.ticks);
    const auto since = static_cast<double>(static_cast<int64_t>(ticks - last_.ticks)) * rate;
    return last_.ns + static_cast<uint64_t>(static_cast<int64_t>(since));
  }
  uint64_t error_ns() const { return error_ns_; }

 private:
  static constexpr int kAnswers = 3;
  static constexpr uint64_t kLeastStretchNs = 1'000'000;
  struct Point {
    uint64_t ticks = 0, ns = 0, took_ns = std::numeric_limits<uint32_t>::max();
  };
  const std::function<uint64_t()> now_ns_, its_error_ns_;
  Point first_, last_;
  uint64_t error_ns_ = 0;
};

}  // namespace flopinj
