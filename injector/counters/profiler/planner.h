// Describes devices and makes their metric plans ready, on a thread of its own; between plans that
// thread closes measurement windows that have been open for long (windows.h), and asks the driver
// what callbacks of CUPTI may not ask (questions.h).
//
// A device is asked for when its first context appears. Host objects and configuration images take
// up to half a second each: they are made once per chip, and the program does not wait for them,
// unless FLOPINJ_PLAN_WAIT_MS or mode full say so. A device that lacks counters of its chip (a
// slice) has a plan of its own. A chip that is in no table has its plan worked out here, from what
// CUPTI says of its metrics.
#pragma once
#include <collector/base/mutex.h>
#include <collector/identity/ids.h>
#include <collector/schedule/group_set.h>
#include <injector/counters/profiler/metric_groups.h>
#include <injector/process/edge.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

// What was shown to work on a chip with this driver and CUPTI (common/doctor_findings.h):
// instructions are counted of kernels whose blocks have no registers to spare, and of warps that
// hand registers to others.
struct ShownToWork {
  bool without_room = false, handed_on = false;
};

// The metrics of several groups, one group after another: CUPTI runs a kernel as often as they have
// passes.
struct JointGroup {
  std::unique_ptr<MetricGroup> group;  // null: there is none
  GroupSet parts;                      // indices of the plan's groups
};

// What is made ready once for all devices of a chip that have the same counters.
struct ChipPlan {
  std::vector<MetricGroupPlan> wanted;               // also those that cannot be measured
  std::vector<std::unique_ptr<MetricGroup>> groups;  // those that can
  // Mode full: what every launch is read with, and a launch that must not be instrumented.
  JointGroup joint, unpatched;
  ShownToWork shown;
};

// The groups of a device that can be measured. Never changed once published.
struct DevicePlan {
  std::span<const std::unique_ptr<MetricGroup>> groups;
  std::vector<GroupId> ids;               // parallel to groups
  const JointGroup* joint = nullptr;      // null but in mode full
  const JointGroup* unpatched = nullptr;  // of it, without instrumented groups; null: there is none
  ShownToWork shown;

  GroupSet instrumented(GroupSet among) const {
    GroupSet some;
    for (const uint32_t g : among)
      if (groups[g]->plan.instrumented) some |= GroupSet(g);
    return some;
  }
};

class Planner {
 public:
  static constexpr uint32_t kMostDevices = 64;

  explicit Planner(Edge& edge) : edge_(edge) {}
  ~Planner();  // after stop() has succeeded

  void device_seen(uint32_t ordinal);  // idempotent; starts the thread at the first call
  // Null: not ready yet, or the device is not measured.
  DevicePlan* plan(uint32_t ordinal) const {
    return ordinal < plans_.size() ? plans_[ordinal].load(std::memory_order_acquire) : nullptr;
  }
  // A launch has waited for the device's plan, so that no other has to.
  bool awaited(uint32_t ordinal) const {
    return ordinal >= kMostDevices || awaited_[ordinal].load(std::memory_order_relaxed);
  }
  void wait(uint32_t ordinal, uint32_t most_ms);  // until the device is done with

  // `visit` is called on the thread every 50 ms from visit_soon() on, until it returns false, and
  // at once after visit_now(). It must not throw. To be set before the first device is seen.
  void set_visit(std::function<bool()> visit) { visit_ = std::move(visit); }
  void visit_soon();
  void visit_now();
  // `answer` is called on the thread, before all else that it has to do, where ask() wants it. It
  // must not throw. To be set likewise.
  void set_answer(std::function<void()> answer) { answer_ = std::move(answer); }
  // Has the thread answer, and waits for that, so long at most. True: it has answered since. Any
  // thread but this one.
  bool ask(std::chrono::nanoseconds most);
  // For what the thread does itself: a pause in which it answers. False: the thread is to end.
  bool pause(std::chrono::nanoseconds);
  // What CUPTI says of a device's counters (ChipCounters::available), asked once for each device
  // before its plan is made. To be set likewise.
  void set_availability(std::function<std::vector<uint8_t>(uint32_t ordinal)> ask) {
    availability_ = std::move(ask);
  }
  // The thread ends after what it is doing now; waited for 2 s at most. False: it is still at work.
  bool stop();

 private:
  void run();
  bool answer_asked(MutexLock&) FLOPINJ_REQUIRES(mutex_);  // false: nobody has asked
  void describe_device(uint32_t ordinal, std::string& chip);
  std::unique_ptr<DevicePlan> make_plan(uint32_t ordinal, const std::string& chip);
  const ChipPlan* chip_plan(ChipCounters);  // null: stopped
  std::unique_ptr<MetricGroup> ready_group(const ChipCounters&, const MetricGroupPlan&, Problem&);
  std::vector<MetricGroupPlan> wanted_for(const ChipCounters&);
  void put_together(ChipPlan&, const ChipCounters&);
  JointGroup joint_of(const ChipPlan&, const ChipCounters&, GroupSet parts);
  bool supported(uint32_t ordinal, Problem&);
  // Without need for memory: there may be none.
  void degrade(std::string_view code, std::string_view line) noexcept;

  Edge& edge_;
  std::array<std::atomic<DevicePlan*>, kMostDevices> plans_{};
  std::array<std::atomic<bool>, kMostDevices> awaited_{};
  std::map<ChipCounters, ChipPlan> chips_;  // the planner's thread only
  bool counters_said_ = false;              // likewise
  std::function<bool()> visit_;
  std::function<void()> answer_;
  std::function<std::vector<uint8_t>(uint32_t ordinal)> availability_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<uint32_t> queue_ FLOPINJ_GUARDED_BY(mutex_);
  std::array<bool, kMostDevices> seen_ FLOPINJ_GUARDED_BY(mutex_){};
  std::array<bool, kMostDevices> done_ FLOPINJ_GUARDED_BY(mutex_){};
  bool running_ FLOPINJ_GUARDED_BY(mutex_) = false;
  bool stopping_ FLOPINJ_GUARDED_BY(mutex_) = false;
  bool visiting_ FLOPINJ_GUARDED_BY(mutex_) = false;
  bool hurried_ FLOPINJ_GUARDED_BY(mutex_) = false;  // the next visit is at once
  // The thread was asked so often; so many of these times were before it last began to answer.
  uint64_t asked_ FLOPINJ_GUARDED_BY(mutex_) = 0, answered_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
