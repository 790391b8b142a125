// One device's time, split among the kernels that ran: which class each instant belongs to, what
// work was done in it, and why no more was.
//
// At each instant the work of all kernels that run is done, each spread evenly over its time. The
// rest of the instant is lost, and belongs to the first class of which a kernel runs, in equal
// parts to its kernels: at first as far as they are at the roof of memory, then as far as their
// blocks fill the multiprocessors unevenly, and what is left is below the roof. All lines of an
// instant add up to it, so those of any set of instants do.
//
// Launches are seen before it is known what they are worth: that follows from the totals. So what
// they come to is kept in a log, in little memory: a kernel that ran alone, as most do, is only
// counted. Where there are worths from the beginning, the log is valued whenever it is long.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "passes/rows/row_log.h"
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
  uint64_t fp32_fs = 0;                       // of the work, where it is a product in fp32
  // The mean of launches in the same range that were not slowed, else of the signature's.
  std::optional<uint64_t> mean_ns = {};
  std::optional<uint64_t> slowed_mean_ns = {};  // of the signature's launches that were slowed
};
// What a row's launches are said to be before that. Where it turns out otherwise, what they came to
// is of no use.
struct LaunchGuess {
  bool communicates = false;  // KernelClass::kCommunication
  bool no_work = false;       // no FLOP
};

class TimeSplit : public Timeline<TimeSplit> {
 public:
  // Steps that are kept apart: where there are more, neighbours share a place.
  static constexpr size_t kMostSteps = 512;

  // `room`: for a log of launches whose worth is not known yet. It must outlive the split.
  explicit TimeSplit(LogRoom* room = nullptr) : room_(room) {}
  ~TimeSplit() { give_room(); }
  TimeSplit(const TimeSplit&) = delete;
  TimeSplit& operator=(const TimeSplit&) = delete;

  // Before all launches: what is outside of [from, to) counts nothing.
  void only(uint64_t from_ns, uint64_t to_ns) {
    from_ns_ = from_ns;
    to_ns_ = to_ns;
    before_ = true;
  }
  bool within(uint64_t ns) const { return from_ns_ <= ns && ns < to_ns_; }
  // The number of a new row. With room for a log its worth is said after finish(), else before the
  // first launch.
  uint32_t add_row(const LaunchGuess& guess = {});
  // `place` is what their phase and range got, and must outlive the split.
  void set_worth(uint32_t row, const LaunchWorth& worth, LostTime& place);
  // In the order of their beginnings.
  void launch(const Launch& launch);
  // Launches of which nothing says when they ran: as if each had run alone. Those without a time
  // take the mean. Their time is in no idle line, but what was found idle holds it.
  void unplaced(RowLog::Unplaced launches);
  // Instead of launches, what a summary has of them: from the first one's beginning to the last
  // one's end, and of stretches of one kind, wherever they are, the sum.
  void summed(uint64_t ns, uint64_t edge_copies_ns) { span(0, ns, edge_copies_ns); }
  // A part of a launch, or of several, counted in kLaunch.
  static constexpr uint64_t kLaunch = uint64_t{1} << 32;
  struct Part {
    uint32_t row = 0;
    uint64_t from = 0, to = 0;  // parts that follow each other add up to the whole
    bool slowed = false;
  };
  void summed_stretch(u128 fs, std::span<const Part> parts);
  void summed_gap(uint32_t row, LostLine line, uint64_t ns, uint64_t beside_ns);
  // What other launches of the device have come to is this one's, and the other one has nothing.
  // `rows`: the numbers of its rows here.
  void add(TimeSplit& other, std::span<const uint32_t> rows);
  // Where another part of the launches, which come before, has entered this step already.
  void enter_at_least(uint32_t step);
  // After the last launch.
  void finish();
  // There was no room for the log: no more is kept.
  bool given_up() const { return given_up_; }
  // When all rows have their worth. False: this is of no use, and the launches have to be read
  // again, with their worths.
  bool value();

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
  friend class Timeline<TimeSplit>;
  // What a stretch of an instant's class has beside its work.
  struct Rest {
    LostLine memory, blocks, below;
    bool roofs;
  };
  static const Rest& rest_of(KernelClass of);
  // What a row's launches came to since the last value_rows(), beside those that are only counted.
  struct Sums {
    u128 work = 0, padding = 0;  // the latter of the former
    std::array<u128, 3> rest{};  // as Rest
    u128 slowed = 0;
  };
  struct Worth {
    LaunchGuess guess;
    LaunchWorth each;
    LostTime* place = nullptr;  // null: it is not known yet
    Sums sums;
  };
  struct InStep {
    LostTime time;
    RowLog log;
    void add(const InStep& o) {
      time.add(o.time);
      log.add(o.log);
      log.add_up();
    }
  };
  // Of one launch, what it did.
  template <typename Fs>
  struct Amounts {
    Fs work = 0, padding = 0, memory = 0, blocks = 0;
    Amounts operator-(const Amounts& o) const {
      return {work - o.work, padding - o.padding, memory - o.memory, blocks - o.blocks};
    }
  };
  struct Done {};
  // What kernels do in the stretch at hand.
  template <typename Fs>
  struct Doing {
    Worth* row;
    KernelClass of;  // kSlowed: no kernel
    Amounts<Fs> amount;
  };
  template <typename Fs>
  using AllDoing = std::vector<Doing<Fs>>;
  template <typename Fs>
  static Amounts<Fs> done_of(const LaunchWorth& worth, uint64_t ran, uint64_t length);
  static uint64_t kernel_ns(const RowLog::Part& part, const LaunchWorth& worth);
  void stretch(uint64_t to);
  void value_steps();
  void value(InStep& step);
  void value(const RowLog::Stretch& stretch, std::span<const RowLog::Part> parts);
  template <typename Fs>
  void value(uint64_t from, uint64_t to, std::span<const RowLog::Part> parts, AllDoing<Fs>& doing);
  void value(const RowLog::Unplaced& launches);
  template <typename Fs>
  void split(Fs fs, const AllDoing<Fs>& doing);
  template <typename Fs>
  void lose(KernelClass of, Fs fs, Fs work, Fs memory, Fs blocks, size_t kernels,
            const AllDoing<Fs>& doing);
  void alone(uint32_t row, uint64_t launches, uint64_t ns);
  void enter_step(uint32_t step);
  void pair_steps();
  bool counts() const { return !before_; }
  bool is_plain(const Launch& launch) const { return launch.windowed == 0; }
  bool is_idle_beside(const Launch& launch) const {
    return is_plain(launch) && worths_[launch.row].guess.communicates &&
           worths_[launch.row].guess.no_work;
  }
  void ran_beside(const Launch& launch, uint64_t alone_ns, uint64_t ns);
  void begin();
  void log_rows();
  void log_takes(size_t bytes);
  size_t bytes_of_logs() const;
  void give_room();
  void give_up();
  void value_rows(LostTime& step);

  uint64_t from_ns_ = 0, to_ns_ = UINT64_MAX;
  bool before_ = false;        // from_ns_ is not reached
  std::vector<Worth> worths_;  // by row
  bool small_ = true;          // all that a launch is worth: see value()
  AllDoing<uint64_t> doing_;   // of the stretch at hand
  AllDoing<u128> much_doing_;
  u128 unplaced_fs_ = 0, hidden_fs_ = 0;
  std::array<u128, kWorkClasses> excess_fs_{};
  uint32_t every_ = 1;
  std::map<uint32_t, InStep> steps_{{0, {}}};  // by 1 + (step - 1) / every_
  InStep* in_step_ = &steps_[0];
  LogRoom* room_;          // null: worths are known
  size_t log_bytes_ = 0;   // with room_: taken of it
  bool given_up_ = false;  // there was no room
};

}  // namespace flopinj::reduce
