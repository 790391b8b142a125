// Decides when counters are read. Pure logic: the edge asks at launches, opens and closes windows,
// and reports back; the writer thread, which sees every launch, reports how often each was made.
//
//   what      sampling.h: first samples, then rounds at growing intervals, varying signatures for
//             good. Of a group with conditions (MetricGroupPlan::needed_if) only once a sample has
//             shown one of them.
//   when      measuring_budget.h: while the budget lasts. A signature it has no room for waits.
//   windows   A window reads one group. One that is opened for first samples stays open for the
//             launches next on its context, until it is full or none in it wanted the group for
//             a while; it gives way to another group when its first kernel comes again (a
//             training step is over), when a kernel follows itself, when others have wanted
//             another one for a while, or when a kernel lacks another one that has left it open
//             once before: three launches suffice for two groups, wherever windows were cut short.
//             One that is opened for a round holds the one launch that was drawn.
//   samples   Only rows that were chosen become samples: what happened to be launched in a window
//             is no fair draw.
//   failures  A signature whose windows keep failing is given up; after a failure it is the last
//             row of its next window, so that the others around it are not given up with it.
//   the end   At SchedulerConfig::until_covered, held for covered_for_ns, nothing is measured any
//             more. Kernels that cannot be measured are left out of that share.
//
// The launch path reads only Signature::wanted_groups; everything else here is reached only when
// that is not zero. Threads: all functions may be called from any thread; they lock, except
// may_want, stopped and close_before. Nothing throws: without memory a signature is not measured
// any more. Times are nanoseconds of one clock, the program's (CollectorHooks::program_ns).
#pragma once
#include <collector/identity/ids.h>
#include <collector/identity/recording.h>
#include <collector/identity/signature_table.h>
#include <collector/schedule/group_set.h>
#include <collector/schedule/measuring_budget.h>
#include <collector/schedule/metric_plan.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace flopinj {

struct SchedulerConfig {
  uint32_t first_samples = 3;    // of each group, from a signature's first launches
  uint32_t max_ranges = 512;     // launches in one window: CUPTI's maxRangesPerPass
  uint32_t idle_launches = 16;   // close after so many launches that did not want the group
  uint32_t switch_launches = 4;  // the same, when another group is wanted
  uint64_t max_open_ns = 200'000'000;
  // Windows in a row that failed on a signature, then it is given up; and windows in a row that
  // failed without any row, then the group is given up on its device.
  uint32_t max_failures = 3;

  double budget = 0.01;  // share of wall time, or MeasuringBudget::kUnlimited
  uint64_t startup_ns = 200'000'000'000;
  double until_covered = 0;  // Coverage::share(); 0: never
  uint64_t covered_for_ns = 5'000'000'000;
  bool every_launch = false;  // no sampling: all of them, all groups at once (mode full)
  uint64_t seed = 0;          // of what is drawn; 0: begin() has it
};

// One launch inside a window, in execution order.
struct WindowRow {
  const Signature* signature = nullptr;
  PathId path;
  uint32_t correlation = 0;
  bool chosen = false;   // becomes a sample
  uint64_t call_ns = 0;  // of the launch call
  bool late = false;     // a module has been loaded since the window was opened
  bool unread = false;   // its counters say nothing: no sample, and no failure either
};

// A window as the scheduler sees it; the edge keeps it.
struct MeasurementWindow {
  DeviceId device;
  uint32_t group = 0;  // index into the plan
  GroupSet together;   // mode full: all that are read at once
  bool shared = true;  // opened for first samples
  bool trial = false;  // of what it costs: no launch is in it
  uint64_t opened_ns = 0;
  WindowCost cost;        // `overhead_ns` and `open_ns` are the edge's to fill in
  uint32_t unchosen = 0;  // the last so many rows
  std::vector<WindowRow> rows;
};

struct LaunchDecision {
  // The open window is closed before the launch. Where `open` is empty: then decide anew, for what
  // the window brings may say what is needed next.
  bool close = false;
  std::optional<uint32_t> open;  // a window for this group, with the launch in it
  bool chosen = false;           // the launch is to become a sample of the window it is in
  bool shared = true;            // for MeasurementWindow
};

// What the writer has seen of one signature on one device since its last report.
struct LaunchProgress {
  DeviceId device;
  SignatureId signature;
  uint64_t launches = 0;           // taken from the launching threads
  uint64_t recorded = 0;           // written, or about to be
  uint64_t timed = 0, gpu_ns = 0;  // made outside of windows, with a time
  uint64_t windowed_timed = 0, windowed_gpu_ns = 0;

  void add(const LaunchProgress& more) {  // of the same signature and device
    device = more.device;
    signature = more.signature;
    launches += more.launches;
    recorded += more.recorded;
    timed += more.timed;
    gpu_ns += more.gpu_ns;
    windowed_timed += more.windowed_timed;
    windowed_gpu_ns += more.windowed_gpu_ns;
  }
};

// Of recorded launches, and of GPU time of launches outside of windows; see Ledger in the format.
struct Coverage {
  uint64_t launches = 0, covered_launches = 0;
  uint64_t gpu_ns = 0, covered_gpu_ns = 0;
  // Of them: kernels that are never measured (collectives and their like), that ran only in graphs
  // or on green contexts, were given up, or need a group that cannot be measured here.
  uint64_t unmeasurable_launches = 0, unmeasurable_gpu_ns = 0;
  // Covered, of what can be measured: of GPU time, of launches where there are no times.
  double share() const;
  double unmeasurable_share() const;  // of all
};

class MeasurementScheduler {
 public:
  MeasurementScheduler(SchedulerConfig, SignatureTable&);
  ~MeasurementScheduler();

  // Wall time counts from here. `seed` serves where the configuration has none.
  void begin(uint64_t now_ns, uint64_t seed) noexcept;
  // A device's plan is ready: its groups get ids (for the trace) and bits (for wanted_groups), and
  // all signatures known so far want those without conditions. Devices of one chip that are read by
  // the same metrics share the bits and what is measured: their launches count as one. Empty: no
  // bits left for all groups, or a device past the 64th; it is not measured. A device that has a
  // plan keeps it: the same ids are returned. A group that is unavailable has id 0, and is not
  // counted where others are numbered.
  std::vector<GroupId> add_plan(DeviceId, const std::string& chip,
                                const std::vector<MetricGroupPlan>&);
  // Counters are unavailable on this device, or one group of them: nothing wants them any more.
  void disable(DeviceId) noexcept;
  void disable(DeviceId, uint32_t group) noexcept;
  // No window of the group is opened on the device until resume(). What kernels want stays.
  void pause(DeviceId, uint32_t group) noexcept;
  void resume(DeviceId, uint32_t group) noexcept;

  // What a new signature is to want.
  uint64_t initial_wanted() const noexcept;

  // --- Launching threads
  // No lock. False: decide() would leave things as they are.
  bool may_want(DeviceId, const Signature&) const noexcept;
  bool stopped() const noexcept;  // nothing is measured any more; windows may still be open
  // At a launch, with the window that is open on its context, if any. Never opens one for what
  // may not be measured.
  LaunchDecision decide(DeviceId, const Signature&, const MeasurementWindow* open,
                        uint64_t now_ns) noexcept;
  // Must an open window be closed before `next` (null: a graph launch)?
  bool close_before(const Signature* next) const noexcept;
  // The launch was made: its row, which the window's rows have room for. True: close it now.
  bool row_added(MeasurementWindow&, const WindowRow&, uint64_t now_ns) noexcept;

  // A window's outcome, its cost filled in: the counters of all its rows were read, or of none.
  // `values` is rows x metrics of the group, row by row. A window that could not be opened has
  // failed with no rows.
  void window_succeeded(const MeasurementWindow&, std::span<const double> values) noexcept;
  void window_failed(const MeasurementWindow&) noexcept;
  // The window was discarded for a reason that its launches have no part in.
  void window_unread(const MeasurementWindow&) noexcept;
  // The group can never be read of this signature.
  void cannot_measure(DeviceId, const Signature&, uint32_t group) noexcept;
  // Nor of this launch, though perhaps of others: as a window with it that failed.
  void cannot_measure_launch(DeviceId, const Signature&, uint32_t group) noexcept;
  void add_cost(uint64_t ns) noexcept;  // of what came to no window
  // Whether a launch may wait so long for a moment at which a window can be opened.
  bool affords(DeviceId, const Signature&, uint64_t ns, uint64_t now_ns) const noexcept;

  // Whether there is room in the budget for opening a window of the group, as far as is known.
  bool affords_window(DeviceId, uint32_t group, uint64_t now_ns) const noexcept;

  // --- The writer thread
  // Counts launches, arms what is due. Timed launch calls outside of windows: all so far.
  void progress(std::span<const LaunchProgress>, uint64_t calls_outside, uint64_t calls_outside_ns,
                uint64_t now_ns) noexcept;

  const SchedulerConfig& config() const;
  uint64_t windows_opened() const;  // whose outcome is known
  uint64_t windows_discarded() const;
  Coverage coverage() const;
  std::string stop_reason() const;  // empty until stopped
  uint64_t spent_ns() const;
  bool varying(DeviceId, SignatureId) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopinj
