// A program that launches kernels on a clock of its own, and the edge and the writer thread around
// the scheduler, as the injector and the collector have them: what measuring costs is known here,
// because the same program without it takes a known time.
#pragma once
#include <collector/schedule/scheduler.h>
#include <collector/writer/launch_counts.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace flopinj::test {

class SimulatedProgram {
 public:
  struct Machine {
    uint64_t gap_ns = 20'000;        // the program's own time between two launches
    uint64_t call_ns = 5'000;        // a launch call, where the GPU has room
    bool gpu_bound = false;          // the queue is full: a call waits for a kernel
    uint64_t window_ns = 1'000'000;  // opening and closing one
    uint64_t slow_down = 100;        // of instrumented kernels
    uint64_t drain_ns = 10'000'000;  // the writer's period
  };
  struct Sample {
    const Signature* signature;
    uint32_t group;
    uint64_t ordinal;  // true
    uint64_t told;     // as the trace would have it
    double value;
  };

  SimulatedProgram(SchedulerConfig config, Machine m) : machine(m), scheduler(config, table) {
    scheduler.begin(now, 1);
  }

  Machine machine;
  SignatureTable table;
  MeasurementScheduler scheduler;
  uint64_t now = 1'000'000'000, began = now;
  uint64_t launches = 0, undisturbed_ns = 0, slow_decisions = 0;
  std::vector<Sample> samples;

  const Signature& kernel(const std::string& name, uint64_t fingerprint = 0) {
    FunctionInfo info;
    info.name = name;
    info.parameters_known = true;
    return *table.intern_signature(*table.intern_function(info), {}, fingerprint,
                                   scheduler.initial_wanted());
  }
  void plan() {
    scheduler.add_plan(kDevice, "GH100",
                       {{"screening", {"b"}, false, false}, {"sass", {"a"}, true, true}});
  }
  // `work` is what every group counts of this launch.
  void launch(const Signature& s, uint64_t gpu_ns, double work = 1, uint64_t gap_ns = 0) {
    now += machine.gap_ns + gap_ns;
    const uint64_t call = machine.gpu_bound ? std::max(gpu_ns, machine.call_ns) : machine.call_ns;
    undisturbed_ns += machine.gap_ns + gap_ns + call;
    enter(s);
    const bool windowed = window_.has_value();
    const bool instrumented = windowed && window_->group == kSass;
    const uint64_t duration = instrumented ? gpu_ns * machine.slow_down : gpu_ns;
    const uint64_t call_began = now;
    now += windowed ? std::max(duration, call) : call;
    if (!windowed && ++calls_ % 63 == 0) ++timed_calls_, timed_ns_ += call;
    ++launches;
    counts_.taken(kDevice, s.id, static_cast<uint32_t>(launches),
                  windowed ? LaunchRecord::kWindowed : 0U);
    TimedLaunch timed;
    timed.signature = s.id;
    timed.start_ns = now;
    timed.end_ns = now + duration;
    timed.windowed = windowed;
    counts_.recorded(kDevice, timed);
    if (windowed) {
      rows_.push_back({&s, window_->group, ordinals_[&s], 0, work});
      const WindowRow row{
          &s, {}, static_cast<uint32_t>(launches), decision_.chosen, now - call_began};
      if (scheduler.row_added(*window_, row, now)) close();
    }
    ++ordinals_[&s];
    drain();
  }
  // A graph launch, say: it ends a window and is in none.
  void launch_outside() {
    if (window_) close();
  }
  uint64_t wall_ns() const { return now - began; }
  double cost() const {  // share of wall time
    return static_cast<double>(wall_ns() - undisturbed_ns) / static_cast<double>(wall_ns());
  }
  size_t samples_of(const Signature& s, uint32_t group) const {
    size_t n = 0;
    for (const Sample& sample : samples) n += sample.signature == &s && sample.group == group;
    return n;
  }

  static constexpr DeviceId kDevice{1};
  static constexpr uint32_t kScreening = 0, kSass = 1;

 private:
  void enter(const Signature& s) {
    decision_ = {};
    if (!window_ && !scheduler.may_want(kDevice, s)) return;
    ++slow_decisions;
    decision_ = scheduler.decide(kDevice, s, window_ ? &*window_ : nullptr, now);
    if (decision_.close) {
      close();
      if (!decision_.open) decision_ = scheduler.decide(kDevice, s, nullptr, now);
    }
    if (!decision_.open) return;
    window_.emplace();
    window_->device = kDevice;
    window_->group = *decision_.open;
    window_->shared = decision_.shared;
    now += machine.window_ns / 2;
    window_->cost.overhead_ns = machine.window_ns / 2;
    window_->opened_ns = now;
  }
  void close() {
    MeasurementWindow window = *std::exchange(window_, std::nullopt);
    window.cost.open_ns = now - window.opened_ns;
    window.cost.overhead_ns += machine.window_ns / 2;
    now += machine.window_ns / 2;
    std::vector<double> values;
    for (const Sample& row : rows_) values.push_back(row.value);
    scheduler.window_succeeded(window, values);
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!window.rows[i].chosen) continue;
      samples.push_back(rows_[i]);
      samples.back().told =
          counts_.ordinal(kDevice, rows_[i].signature->id, window.rows[i].correlation);
    }
    rows_.clear();
  }
  void drain() {
    if (now < next_drain_) return;
    next_drain_ = now + machine.drain_ns;
    scheduler.progress(counts_.changed(), timed_calls_, timed_ns_, now);
  }

  LaunchDecision decision_;
  std::optional<MeasurementWindow> window_;
  std::vector<Sample> rows_;
  LaunchCounts counts_;
  std::map<const Signature*, uint64_t> ordinals_;
  uint64_t calls_ = 0, timed_calls_ = 0, timed_ns_ = 0, next_drain_ = 0;
};

}  // namespace flopinj::test
