// Which launches are recorded, as the user chose: --kernel-name and --nvtx-include first, then, of
// the launches that these choose, --launch-skip and --launch-count. A launch that is not chosen is
// counted as passed over and leaves nothing else behind.
//
// A launch has its turn at its ENTER, which decides whether it may be measured. One that fails, or
// becomes a node of a graph, hands its turn on. A launch of a graph is one launch.
//
// Threads: any. No lock; launches of several threads share two counters where they are counted.
#pragma once
#include <collector/options/settings.h>
#include <collector/ranges/range_stack.h>
#include <injector/process/thread_context.h>

#include <atomic>
#include <cstdint>
#include <limits>

namespace flopinj {

class LaunchChoice {
 public:
  // `ends` says that the recording ends by a call of the program.
  LaunchChoice(const Settings&, bool ends);

  bool any() const { return any_; }  // false: every launch is recorded
  // No further launch is recorded: the last was, or the program has said so.
  bool over() const { return over_.load(std::memory_order_relaxed); }
  void end() noexcept;
  // Of a launch of kernels whose names are chosen. Where any().
  LaunchTurn take(RangeStack&) noexcept;
  // The launch was none: another one has its turn.
  void failed(LaunchTurn) noexcept;
  // The launch is recorded. With the last that is to be, the recording ends.
  void recorded() noexcept {
    if (count_ != 0) count_one();
  }

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  void count_one() noexcept;

  const bool by_range_, counted_, any_;
  const uint64_t count_;               // 0: no end
  std::atomic<uint64_t> first_, end_;  // turns of launches that are recorded
  std::atomic<uint64_t> next_{0}, recorded_{0};
  std::atomic<bool> over_{false};
};

}  // namespace flopinj
