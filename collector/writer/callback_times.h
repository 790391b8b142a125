// What launch callbacks take on one host thread, by a sample of them. The first ones are timed one
// by one, later ones ever more rarely: of a short program the estimate is the measurement. A timed
// callback speaks for itself and for all behind the timed one before it. So the one cold callback
// at a thread's beginning speaks for no other.
//
// Written by its thread, read by any: single writer, relaxed.
#pragma once
#include <collector/base/bump.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace flopinj {

class CallbackTimes {
 public:
  // From one timed callback to the next: odd, so that ENTER and EXIT take turns.
  static constexpr uint64_t kOneByOne = 64, kMostApart = 63;

  // One more callback. True: it is to be timed, or the next one where nobody calls took().
  bool begins() noexcept {
    const uint64_t number = count_.load(std::memory_order_relaxed);
    bump(count_);
    return number >= next_;
  }
  void took(uint64_t ns) noexcept {
    const uint64_t count = count_.load(std::memory_order_relaxed);
    const uint64_t spoken_for = spoken_for_.load(std::memory_order_relaxed);
    bump(ns_, ns * (count - spoken_for));
    spoken_for_.store(count, std::memory_order_relaxed);
    next_ = count - 1 + (std::min(count / kOneByOne, kMostApart) | 1);
  }

  uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  // In all callbacks: those behind the last timed one took what all before took on average.
  uint64_t estimate_ns() const noexcept {
    const uint64_t spoken_for = spoken_for_.load(std::memory_order_relaxed);
    const uint64_t ns = ns_.load(std::memory_order_relaxed), count = this->count();
    if (spoken_for == 0 || count <= spoken_for) return ns;
    return ns + static_cast<uint64_t>(static_cast<double>(ns) / static_cast<double>(spoken_for) *
                                      static_cast<double>(count - spoken_for));
  }

 private:
  std::atomic<uint64_t> count_{0}, spoken_for_{0}, ns_{0};
  uint64_t next_ = 0;
};

}  // namespace flopinj
