// Joins launches with their GPU times, which arrive later and in any order, by correlation id (and
// graph node).
//
// No document of CUPTI says that its records go together with its range profiler. So of launches in
// windows a time that begins over kMostEarlyNs before the launch is none, and launches without a
// time are counted apart.
//
// A launch that has its time is remembered for a while, so that a second record of it is known for
// what it is.
//
// Bounded: past kMaxPending launches the oldest are released untimed, past kMaxEarlyTimes times the
// oldest are counted as unmatched, past kMaxLate the oldest launches released untimed are no longer
// waited for. Correlation ids wrap: when one comes again, whatever still waited under it will never
// be matched and waits no longer. Used only by the writer thread.
#pragma once
#include <collector/base/assert.h>
#include <collector/identity/graph_table.h>
#include <collector/identity/launch.h>
#include <collector/identity/launch_record.h>
#include <collector/trace/launch_columns.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace flopinj {

inline constexpr size_t kMaxPending = 1U << 20;
inline constexpr size_t kMaxEarlyTimes = 1U << 18;
inline constexpr size_t kMaxLate = 1U << 20;
inline constexpr size_t kMaxConditional = 1U << 16;  // nodes of graph launches that are followed
inline constexpr size_t kMaxFound = 1U << 18;        // executions between two releases
inline constexpr uint64_t kMostEarlyNs = 1'000'000;  // what clocks may be apart
inline constexpr uint32_t kEarlyAge =
    8;  // releases beyond max_age that a time without a launch is kept

class LaunchMerger {
 public:
  // `expect_times` false (count mode): launches are released at once, untimed. `windows_slow` false
  // (on the simulated clock): times of launches in windows are the program's, and not marked.
  explicit LaunchMerger(bool expect_times, bool windows_slow = true);
  ~LaunchMerger();

  struct Origin {
    ThreadId thread;
    StreamId stream;
    DeviceId device;  // carried along, for the ledger
    bool operator==(const Origin&) const = default;
  };
  // A launch with correlation id 0 waits for no time. After launch() or graph_launch(), when
  // full(), the caller calls release() before it adds more.
  // Times of the program's calls are on the trace's clock, as is `pause`, which was before them.
  void launch(const Origin&, const LaunchRecord&, const Pause& pause = {});
  // A graph launch is one launch per node; `path` of the record serves nodes without a
  // path. A node whose id is unknown is timed only where it is the graph's only one: durations are
  // never guessed onto kernels.
  void graph_launch(const Origin&, const LaunchRecord&, std::span<const GraphNode> nodes,
                    const Pause& pause = {});
  // Nodes of conditional bodies: each activity record of one that comes, now or later, is a launch.
  // False where that will not report all of them: no times are expected, or a node has no id.
  bool conditional(const Origin&, const LaunchRecord&, std::span<const GraphNode> nodes);
  void times(std::span<const KernelTime>);

  bool full() const;
  size_t pending() const;

  // Releases, in launch order per origin, every launch that is timed, and, untimed, those that have
  // seen `max_age` calls of release before (and all of them when `all`; and the oldest when
  // full()). A launch that still waits holds back those behind it of the same origin.
  using Release = std::function<void(const Origin&, const TimedLaunch&)>;
  // A time that came after its launch was released untimed: a tally row with launches = 0.
  using Late = std::function<void(const TallyRow&)>;
  void release(uint32_t max_age, bool all, const Release&, const Late&);
  void clear();  // everything that waits is forgotten

  uint64_t activity_records() const;    // times received
  uint64_t activity_unmatched() const;  // of these, given up: no launch of ours came for them
  uint64_t duplicates() const;          // of these, seen before: their launch had its time already
  uint64_t unusable() const;  // of these, without a time: CUPTI could not take it; not in windows
  // Launches in windows without a time, where most of them lack it and few others do; else 0.
  uint64_t timeless_in_windows() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  OneThread thread_;
};

}  // namespace flopinj
