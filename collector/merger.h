// Joins launches with their GPU times, which arrive later and in any order, by correlation id (and
// graph node).
//
// Bounded: past kMaxPending launches the oldest are released untimed, past kMaxEarlyTimes times the
// oldest are counted as unmatched. Used by the writer thread alone.
#pragma once
#include <collector/launch_columns.h>
#include <collector/launch_record.h>
#include <collector/model.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace flopinj {

inline constexpr size_t kMaxPending = 1U << 20;
inline constexpr size_t kMaxEarlyTimes = 1U << 18;
inline constexpr size_t kMaxLate = 1U
                                   << 20;  // launches released untimed whose time is still awaited

class LaunchMerger {
 public:
  // `expect_times` false (count mode): launches are released at once, untimed.
  explicit LaunchMerger(bool expect_times);
  ~LaunchMerger();

  struct Origin {
    ThreadId thread;
    StreamId stream;
  };
  void launch(Origin, const LaunchRecord&);
  // A graph launch stands for one launch per node; `fallback_path` of the record serves nodes
  // without a path.
  void graph_launch(Origin, const LaunchRecord&, std::span<const GraphNode> nodes);
  void times(std::span<const KernelTime>);

  // Releases, in launch order per origin, every launch that is timed, and, untimed, those that have
  // seen `max_age` calls of release before (and all of them when `all`).
  using Release = std::function<void(Origin, const TimedLaunch&)>;
  // A time that came after its launch was released untimed: a tally row with launches = 0.
  using Late = std::function<void(const TallyRow&)>;
  void release(uint32_t max_age, bool all, const Release&, const Late&);

  uint64_t activity_records() const;
  uint64_t activity_unmatched() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopinj
