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
#include <vector>

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

class TimeSplit {
 public:
  struct Launch {
    uint64_t begin_ns = 0, length_ns = 0;
    const LaunchWorth* worth = nullptr;
    LostTime* place = nullptr;  // what its phase and range got; both must outlive the split
    uint32_t step = 0;
    bool windowed = false;       // made while counters were read
    bool slowed = false;         // no kernel: KernelClass::kSlowed
    uint32_t called_before = 0;  // when the program called for it: LaunchBatch.called_before
    uint32_t pause = 0;          // of add_pause()
  };
  // Steps that are kept apart: where there are more, neighbours share a place.
  static constexpr size_t kMostSteps = 512;
  static constexpr uint64_t kLongGapNs = 100'000;
  static constexpr size_t kMostPauses = 1U << 20;

  // What a thread did before a launch: it spent this time in a range.
  struct Pause {
    uint32_t path = 0;
    uint64_t begin_ns = 0, end_ns = 0;
  };

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
  // For Launch::pause; 0 where there are too many.
  uint32_t add_pause(const Pause& pause) {
    if (pauses_.size() >= kMostPauses) return 0;
    pauses_.push_back(pause);
    return static_cast<uint32_t>(pauses_.size());
  }
  // The clocks of calls and of kernels may differ by so much.
  void clock_error(uint64_t ns) {
    constexpr uint64_t kMost = 1ULL << 60;  // sums stay below 2^64
    clock_error_ns_ = std::max(clock_error_ns_, std::min(ns, kMost));
  }
  // In the order of their beginnings.
  void launch(const Launch& launch);
  // `count` launches that took so long together, and nothing says when: as if each had run alone.
  // Their time is in no idle line, but what was found idle holds it.
  void unplaced(const LaunchWorth& worth, LostTime& place, uint64_t count, uint64_t ns);
  // What takes no part in any order.
  void slowed_unplaced(LostTime& place, uint64_t ns);
  // After the last launch.
  void finish();

  bool any() const { return any_; }
  uint64_t begin_ns() const { return begin_ns_; }  // of the first launch
  uint64_t end_ns() const { return now_; }         // of the last one
  u128 unplaced_fs() const { return unplaced_fs_; }
  u128 hidden_fs() const { return hidden_fs_; }  // communication beside other kernels
  // Of kIdleHostLate, ns by the range that the thread was in meanwhile.
  const std::map<uint32_t, uint64_t>& host_ns() const { return host_ns_; }
  // Work beyond the time that it was done in, by the class of the instant. The lines are larger
  // than the time by it.
  const std::array<u128, kWorkClasses>& excess_fs() const { return excess_fs_; }

  // A device's step lasts from its first kernel to the next step's first.
  struct Step {
    uint32_t first = 0;  // 0: before all steps, or in none
    uint32_t steps = 0;
    LostTime time;
  };
  std::vector<Step> steps() const;

 private:
  struct Running {
    Launch launch;
    uint64_t end_ns = 0;
    KernelClass of() const { return launch.slowed ? KernelClass::kSlowed : launch.worth->of; }
  };
  // What a stretch of an instant's class has beside its work.
  struct Rest {
    LostLine memory, blocks, below;
    bool roofs;
  };
  static const Rest& rest_of(KernelClass of);
  void run_until(uint64_t ns);
  bool alone(const Launch& launch);
  void stretch(uint64_t to);
  void gap(uint64_t to, const Launch& next);
  LostLine line_of_gap(uint64_t ns, const Launch& next) const;
  void add_host_time(uint64_t to, const Pause& pause);
  void enter_step(uint32_t step);
  void begin();
  void add(LostTime& place, LostLine line, u128 fs);
  void add_work(LostTime& place, const LaunchWorth& worth, u128 work, u128 padding);
  void lose(KernelClass of, u128 fs, u128 work, u128 memory, u128 blocks, size_t kernels);

  uint64_t from_ns_ = 0, to_ns_ = UINT64_MAX;
  bool before_ = false;  // from_ns_ is not reached
  bool any_ = false;
  uint64_t begin_ns_ = 0, now_ = 0;
  std::vector<Running> running_;
  uint32_t last_step_ = 0;  // of the kernel that ended last
  bool last_windowed_ = false;
  std::vector<Pause> pauses_;
  uint64_t clock_error_ns_ = 0;
  std::map<uint32_t, uint64_t> host_ns_;
  u128 unplaced_fs_ = 0, hidden_fs_ = 0;
  std::array<u128, kWorkClasses> excess_fs_{};
  uint32_t step_ = 0, every_ = 1;
  std::map<uint32_t, LostTime> steps_{{0, {}}};  // by 1 + (step - 1) / every_
  LostTime* in_step_ = &steps_[0];
};

}  // namespace flopinj::reduce
