// How long a context's waiting work (waiting_streams.h) takes to end, learned from ends that were
// seen, and whether a launch that wants a window may wait for it. Pure arithmetic; locked by its
// owner. Times are CLOCK_MONOTONIC in nanoseconds.
//
//   A call of the program's that waits for the GPU (loss.item()) has shown how far the host runs
//   ahead: it took `longest` for all such work. Behind it the host is not ahead, so the next such
//   work ends soon: in `each` for each call that made some (a quarter of `longest`, until a wait
//   has shown it). Where that fits kMostWait, the launch may wait, as long as the last end lies
//   within kStretch. So ranks that train alike wait in the same steps: those behind such a call.
//   Calls in a row, as of a thread that waits for one device after the other, are one call.
//
// A wait that was in vain doubles what is expected, and is followed by a pause that doubles, too.
// Where no call of the program's has ever waited for such work, no launch waits.
#pragma once
#include <algorithm>
#include <cstdint>

namespace flopinj {

class Drains {
 public:
  static constexpr uint64_t kMostWaitNs = 1'000'000'000, kStretchNs = 250'000'000;
  static constexpr uint64_t kLeastNs = 5'000'000;  // is allowed to each: threads wake late
  static constexpr uint64_t kTellsNs = 1'000'000;  // a call that has waited so long tells something

  void made() { ++made_; }  // a call put such work into a stream
  // None of it is unfinished any more.
  void ended(uint64_t now_ns) {
    ended_ns_ = now_ns;
    last_made_ = std::max<uint64_t>(made_, 1);
    made_ = 0;
  }
  // The same at the end of a call of the program's that took so long.
  void ended_in_call(uint64_t now_ns, uint64_t took_ns) {
    ended(now_ns);
    if (longest_ns_ != 0 && took_ns < kTellsNs) return;  // it was about to end
    longest_ns_ = std::max(took_ns, longest_ns_ / 8 * 7);
    if (!learned_) each_ns_ = std::max(each_ns_, std::min(took_ns / 4, kMostWaitNs / 2));
  }

  // How long a launch may wait now; 0: not at all.
  uint64_t may_wait_ns(uint64_t now_ns) const {
    if (longest_ns_ == 0 || now_ns < pause_until_ns_ || now_ns > ended_ns_ + kStretchNs) return 0;
    const uint64_t expected = std::min(made_ * each_ns_, longest_ns_);
    return expected <= kMostWaitNs ? std::min(2 * expected + kLeastNs, kMostWaitNs) : 0;
  }
  // A launch has waited so long; `in_vain`: it has not ended.
  void waited(uint64_t now_ns, uint64_t took_ns, bool in_vain) {
    if (in_vain) {
      each_ns_ = std::max(2 * each_ns_, took_ns / std::max<uint64_t>(made_, 1));
      longest_ns_ = std::max(longest_ns_, 2 * took_ns);
      pause_until_ns_ = now_ns + (took_ns << std::min<uint32_t>(4 + vain_++, 10));
      return;
    }
    const uint64_t seen = took_ns / last_made_;
    each_ns_ = learned_ ? (3 * each_ns_ + seen) / 4 : seen;
    learned_ = true;
    vain_ = 0;
  }

 private:
  uint64_t made_ = 0, last_made_ = 1;  // calls since the last end, and between the two last ones
  uint64_t ended_ns_ = 0, longest_ns_ = 0, each_ns_ = 0;
  uint64_t pause_until_ns_ = 0;
  uint32_t vain_ = 0;     // waits in a row
  bool learned_ = false;  // each_ns_, from a wait
};

}  // namespace flopinj
