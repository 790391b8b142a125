#include <collector/base/start_thread.h>
#include <collector/collector.h>
#include <collector/identity/fingerprint.h>
#include <collector/writer/collector_state.h>
#include <collector/writer/writer_loop.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <numeric>
#include <utility>

namespace flopinj {
namespace {

constexpr uint32_t kMaxRingRecords = 1U << 24;

// Nothing throws across the interface: what cannot be done for want of memory is not done.
template <class Result, class Body>
Result guarded(Result otherwise, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}
template <class Body>
void guarded(Body&& body) noexcept {
  try {
    body();
  } catch (...) {
  }
}

// The writer may outlive the collector when it is stuck, so it owns a share of the state.
struct Writer {
  CollectorState* state;
  std::unique_ptr<WriterLoop> loop;

  void operator()() {
    loop->run();
    loop.reset();
    state->release();
  }
};

}  // namespace

uint64_t CollectorState::now() const {
  if (hooks.now_ns) return hooks.now_ns();
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

uint64_t CollectorState::program_now() const {
  return hooks.program_ns ? hooks.program_ns() : real_now();
}
uint64_t CollectorState::real_now() const { return hooks.real_ns ? hooks.real_ns() : now(); }

Collector::Collector(const CollectorConfig& config, CollectorHooks hooks)
    : state_(new CollectorState(config, std::move(hooks))) {}

Collector::~Collector() {
  if (dead_) return;
  close(EndReason::kExit);
  state_->release();
}

bool Collector::start(std::unique_ptr<Sink> sink, const ProcessInfo& process) {
  const MutexLock lock(life_);
  if (dead_ || started_ || closed_ || !sink) return false;
  return guarded(false, [&] {
    sink_ = sink.get();
    Writer writer{state_, std::make_unique<WriterLoop>(*state_, std::move(sink), process)};
    state_->owners.fetch_add(1, std::memory_order_relaxed);
    started_ = start_thread(writer_, std::move(writer));
    if (started_) {
      state_->steps.begin();
    } else {
      sink_ = nullptr;
      state_->release();
    }
    return started_.load();
  });
}

bool Collector::await_header(std::chrono::milliseconds at_most) {
  return !dead_ && started_ && state_->control.await_begin(at_most);
}

bool Collector::close(EndReason reason) {
  const MutexLock lock(life_);
  if (dead_ || std::exchange(closed_, true)) return true;
  state_->accepting.store(false, std::memory_order_relaxed);
  if (!started_) return true;
  sink_ = nullptr;
  const bool done =
      state_->control.close(reason, std::chrono::milliseconds(state_->config.close_timeout_ms));
  if (done)
    pthread_join(writer_, nullptr);
  else
    pthread_detach(writer_);
  return done;
}

void Collector::flush() {
  if (dead_ || !started_) return;
  state_->control.flush(std::chrono::milliseconds(state_->config.close_timeout_ms));
}

void Collector::abandon_after_fork() noexcept {
  dead_.store(true, std::memory_order_relaxed);
  if (sink_ != nullptr) sink_->abandon_after_fork();
}

ThreadState* Collector::add_thread(uint32_t os_tid) {
  if (dead_) return nullptr;
  return guarded<ThreadState*>(
      nullptr, [&] { return state_->threads.add(os_tid, state_->paths, state_->process_ranges); });
}

void Collector::retire_thread(ThreadState* thread) {
  if (dead_ || thread == nullptr) return;
  guarded([&] {
    std::string name;
    if (thread->ring.pushed() != 0 && state_->hooks.thread_name)
      name = state_->hooks.thread_name(thread->os_tid);
    state_->threads.retire(thread, std::move(name));
  });
}

void Collector::add_device(DeviceId id, const DeviceInfo& info) {
  if (!dead_) guarded([&] { state_->descriptions.device(id, info); });
}

StreamId Collector::add_stream(DeviceId device, uint32_t context, uint32_t stream,
                               bool green_context) {
  if (dead_) return {};
  return guarded(StreamId{}, [&] {
    return state_->descriptions.stream(device, context, stream, green_context);
  });
}

const KernelFunction* Collector::add_function(const FunctionInfo& info) {
  if (dead_) return nullptr;
  return guarded<const KernelFunction*>(nullptr,
                                        [&] { return state_->signatures.intern_function(info); });
}

GraphId Collector::add_graph(std::vector<GraphNode> nodes) {
  if (dead_) return {};
  return guarded(GraphId{}, [&] { return state_->graphs.add(std::move(nodes)); });
}

std::vector<GroupId> Collector::add_plan(DeviceId device, const std::string& chip,
                                         const std::vector<MetricGroupPlan>& plan) {
  if (dead_) return {};
  return guarded(std::vector<GroupId>{}, [&] {
    std::vector<GroupId> ids = state_->scheduler.add_plan(device, chip, plan);
    ids.resize(plan.size());
    const std::string why = state_->scheduler.stopped()
                                ? "measuring had ended when its plan was ready"
                                : "the process uses GPUs of too many kinds";
    bool refused = false;
    for (size_t g = 0; g < plan.size(); ++g) {
      MetricGroupPlan group = plan[g];
      if (!ids[g] && group.unavailable.empty()) {
        group.unavailable = why;
        refused = true;
      }
      state_->descriptions.group(ids[g], device, group);
    }
    if (refused)
      diagnostic(Severity::kWarning, "counters.groups",
                 "device " + std::to_string(device.value - 1) + " is not measured: " + why);
    return ids;
  });
}

const Signature* Collector::signature(SignatureId id) const noexcept {
  return dead_ ? nullptr : state_->signatures.find(id);
}

uint64_t Collector::launches_made() const {
  const ThreadTotals totals = state_->threads.totals();
  return std::accumulate(totals.made.begin(), totals.made.end(), uint64_t{0});
}

RecordingProgress Collector::progress() const {
  const ThreadTotals totals = state_->threads.totals();
  const LossCounts::Snapshot losses = state_->losses.snapshot();
  RecordingProgress progress;
  for (size_t d = 0; d < kDeviceSlots; ++d) {
    progress.launches += totals.made[d] + losses.made[d];
    progress.dropped += totals.ring_full[d] + losses.dropped[d];
  }
  progress.trace_bytes = state_->trace_bytes.load(std::memory_order_relaxed);
  progress.covered = state_->scheduler.coverage().share();
  progress.callback_ns = totals.callback_ns;
  progress.measuring_ns = state_->scheduler.spent_ns();
  progress.startup_ns = state_->startup_ns.load(std::memory_order_relaxed);
  return progress;
}

void Collector::diagnostic(Severity severity, std::string_view code, std::string_view message,
                           uint64_t times) {
  if (dead_) return;
  guarded([&] { state_->diagnostics.push(severity, code, message, state_->now(), times); });
}

void Collector::count_unseen(std::string_view reason, uint64_t by) {
  if (!dead_) guarded([&] { state_->losses.unseen(reason, by); });
}

void Collector::count_dropped(std::string_view reason, DeviceId device, uint64_t by) {
  if (!dead_ && state_->accepting.load(std::memory_order_relaxed))
    guarded([&] { state_->losses.unrecorded(reason, device, by); });
}

void Collector::count_interrupting_range() noexcept {
  if (!dead_) state_->interrupting_ranges.fetch_add(1, std::memory_order_relaxed);
}

void Collector::add_startup_ns(uint64_t ns) {
  if (!dead_) state_->startup_ns.fetch_add(ns, std::memory_order_relaxed);
}

RangePathTable& Collector::paths() { return state_->paths; }
ProcessRanges& Collector::process_ranges() { return state_->process_ranges; }
RangeNumbers& Collector::range_numbers() { return state_->range_numbers; }
MeasurementScheduler& Collector::scheduler() { return state_->scheduler; }

const Signature* Collector::signature(ThreadState& thread, const KernelFunction& function,
                                      const LaunchShape& shape, const ParameterValues& values) {
  if (dead_.load(std::memory_order_relaxed)) return nullptr;
  return guarded<const Signature*>(nullptr, [&] {
    const uint64_t fingerprint = fingerprint_of(function.info, values);
    if (const Signature* known = thread.signatures.find(function, shape, fingerprint)) return known;
    const Signature* added = interned(function, shape, fingerprint);
    if (added != nullptr) thread.signatures.insert(function, shape, fingerprint, added);
    return added;
  });
}

const Signature* Collector::with_cluster(const Signature& made,
                                         const std::array<uint32_t, 3>& cluster) {
  if (dead_.load(std::memory_order_relaxed)) return nullptr;
  return guarded<const Signature*>(nullptr, [&] {
    LaunchShape shape = made.shape;
    shape.cluster = cluster;
    return interned(*made.function, shape, made.fingerprint);
  });
}

const Signature* Collector::interned(const KernelFunction& function, const LaunchShape& shape,
                                     uint64_t fingerprint) {
  const uint64_t wanted = function.never_measure ? 0 : state_->scheduler.initial_wanted();
  return state_->signatures.intern_signature(function, shape, fingerprint, wanted);
}

void Collector::record(ThreadState& thread, DeviceId device, const LaunchRecord& launch,
                       uint32_t launches) {
  const bool graph = (launch.flags & LaunchRecord::kGraph) != 0;
  if (dead_.load(std::memory_order_relaxed) || (launches == 0 && !graph)) return;
  if (!state_->accepting.load(std::memory_order_relaxed)) return;
  if (thread.ring.wants_memory()) [[unlikely]]
    thread.ring.allocate(
        std::bit_ceil(std::clamp<uint32_t>(state_->config.ring_records, 2, kMaxRingRecords)));
  const size_t slot = device_slot(device);
  // Counted as made first: see ThreadTotals::add.
  bump(thread.launches[slot].made, launches);
  if (thread.push({launch, slot, launches})) return;
  auto& dropped = thread.launches[slot].dropped;
  dropped.store(dropped.load(std::memory_order_relaxed) + launches, std::memory_order_release);
}

void Collector::times(std::span<const KernelTime> times) {
  if (!dead_) guarded([&] { state_->times.push(times); });
}

void Collector::copies(std::span<const CopyTime> copies) {
  if (!dead_) guarded([&] { state_->copies.push(copies); });
}

void Collector::samples(SampleBatch batch) {
  if (dead_) return;
  const bool queued = guarded(false, [&] { return state_->samples.push(std::move(batch)); });
  if (!queued)
    diagnostic(Severity::kWarning, "collector.samples_dropped",
               "counter samples found no room in the writer's queue and were dropped");
}

}  // namespace flopinj
