// One device's time, split among the kernels that ran: which class each instant belongs to, what
// work was done in it, and why no more was.
//
// At each instant the work of all kernels that run is done, each spread evenly over its time. The
// rest of the instant is lost, and belongs to the first class of which a kernel runs, in equal
// parts to its kernels: at first as far as they are at the roof of memory, then as far as their
// blocks fill the multiprocessors unevenly, and what is left is below the roof. All lines of an
// instant add up to it, so those of any set of instants do.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "passes/rows/timeline.h"
#include "tables/lost_time.h"

namespace flopinj::reduce {

// What a launch is worth. Times are those that it takes at the least.
struct LaunchWorth {
  KernelClass of = KernelClass::kUncounted;
  LostLine work_line = LostLine::kOtherFlop;  // of its work, without padding
  uint64_t work_fs = 0;                       // FLOP at peak, each precision's own
  uint64_t padding_fs = 0;                    // of it
  uint64_t memory_fs = 0;                     // by memory too: work_fs or more
  uint64_t blocks_fs = 0;                     // by its blocks too: memory_fs or more
};

struct SplitLaunch {
  uint64_t begin_ns = 0, length_ns = 0;
  const LaunchWorth* worth = nullptr;
  LostTime* place = nullptr;  // what its phase and range got; both must outlive the split
  uint32_t step = 0;
  bool windowed = false;       // made while counters were read
  bool slowed = false;         // no kernel: KernelClass::kSlowed
  bool copy = false;           // nor this: it has a time and nothing else
  uint32_t called_before = 0;  // when the program called for it: LaunchBatch.called_before
  uint32_t pause = 0;          // Timeline::add_pause()
};

class TimeSplit : public Timeline<TimeSplit, SplitLaunch> {
 public:
  using Launch = SplitLaunch;
  // Steps that are kept apart: where there are more, neighbours share a place.
  static constexpr size_t kMostSteps = 512;

  TimeSplit() = default;
  TimeSplit(const TimeSplit&) = delete;
  TimeSplit& operator=(const TimeSplit&) = delete;

  // Before all launches: what is outside of [from, to) counts nothing.
  void only(uint64_t from_ns, uint64_t to_ns) {
    from_ns_ = from_ns;
    to_ns_ = to_ns;
    before_ = true;
  }
  bool within(uint64_t ns) const { return from_ns_ <= ns && ns < to_ns_; }
  // In the order of their beginnings.
  void launch(const Launch& launch);
  void copy(uint64_t begin_ns, uint64_t length_ns) {
    add_copy(std::max(begin_ns, from_ns_), std::min(begin_ns + length_ns, to_ns_));
  }
  // `count` launches that took so long together, and nothing says when: as if each had run alone.
  // Their time is in no idle line, but what was found idle holds it.
  void unplaced(const LaunchWorth& worth, LostTime& place, uint64_t count, uint64_t ns);
  // What takes no part in any order.
  void slowed_unplaced(LostTime& place, uint64_t ns);
  // Instead of launches, what a summary has of them: from the first one's beginning to the last
  // one's end, and of stretches of one kind, wherever they are, the sum.
  void summed(uint64_t ns, uint64_t edge_copies_ns) { span(0, ns, edge_copies_ns); }
  // A part of a launch, or of several, counted in kLaunch.
  static constexpr uint64_t kLaunch = uint64_t{1} << 32;
  struct Part {
    const LaunchWorth* worth = nullptr;
    LostTime* place = nullptr;
    uint64_t from = 0, to = 0;  // parts that follow each other add up to the whole
    uint64_t whole = kLaunch;
    bool slowed = false;
    KernelClass of() const { return slowed ? KernelClass::kSlowed : worth->of; }
  };
  void summed_stretch(u128 fs, std::span<const Part> parts);
  void summed_gap(LostTime& place, LostLine line, uint64_t ns, uint64_t beside_ns);
  // After the last launch.
  void finish();

  u128 unplaced_fs() const { return unplaced_fs_; }
  u128 hidden_fs() const { return hidden_fs_; }  // communication beside other kernels
  // Work beyond the time that it was done in, by the class of the instant. The lines are larger
  // than the time by it.
  const std::array<u128, kWorkClasses>& excess_fs() const { return excess_fs_; }

  // A device's step begins when the kernels before its first one have ended.
  struct Step {
    uint32_t first = 0;  // 0: before all steps, or in none
    uint32_t steps = 0;
    LostTime time;
  };
  std::vector<Step> steps() const;

 private:
  friend class Timeline<TimeSplit, SplitLaunch>;
  // What a stretch of an instant's class has beside its work.
  struct Rest {
    LostLine memory, blocks, below;
    bool roofs;
  };
  static const Rest& rest_of(KernelClass of);
  bool alone(const Launch& launch);
  void stretch(uint64_t to);
  void gap(uint64_t ns, LostLine line, const Launch& next, bool beside);
  void enter_step(uint32_t step);
  bool counts() const { return !before_; }
  void begin();
  void add(LostTime& place, LostLine line, u128 fs);
  void add_work(LostTime& place, const LaunchWorth& worth, u128 work, u128 padding);
  void lose(KernelClass of, u128 fs, u128 work, u128 memory, u128 blocks,
            std::span<const Part> parts, size_t kernels);

  uint64_t from_ns_ = 0, to_ns_ = UINT64_MAX;
  bool before_ = false;      // from_ns_ is not reached
  std::vector<Part> parts_;  // of the stretch at hand
  u128 unplaced_fs_ = 0, hidden_fs_ = 0;
  std::array<u128, kWorkClasses> excess_fs_{};
  uint32_t every_ = 1;
  std::map<uint32_t, LostTime> steps_{{0, {}}};  // by 1 + (step - 1) / every_
  LostTime* in_step_ = &steps_[0];
};

}  // namespace flopinj::reduce
