#include <collector/ranges/process_ranges.h>
#include <collector/ranges/range_path_table.h>
#include <collector/ranges/range_stack.h>
#include <collector/ranges/steps.h>
#include <collector/schedule/metric_plan.h>
#include <collector/trace/copy_output.h>
#include <collector/trace/launch_output.h>
#include <collector/trace/new_definitions.h>
#include <collector/trace/step_output.h>
#include <collector/trace/trace_writer.h>
#include <import/counters.h>
#include <import/launches.h>
#include <import/play.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace flopinj::import {
namespace {

// Launches of so much time are in one packet, as the recorder writes them.
constexpr int64_t kSliceNs = 250'000'000;
// The trace's clock begins so long before the first event: no time is 0, which would be none.
constexpr int64_t kBeforeFirstNs = 1'000'000;
// An old file says begin and duration in whole microseconds, each rounded: what is inside of a
// range may seem to end so many units after it.
constexpr int64_t kRoundedUnits = 2;

// A file may say any number; what counts devices has a place for each.
constexpr uint32_t kMostDevices = 1U << 12;
DeviceId device_id(uint32_t ordinal) { return DeviceId{std::min(ordinal, kMostDevices - 1) + 1}; }

// The range of launches whose call the file does not have, as those that were made before it began:
// they were in ranges, and nobody knows in which (proto/FORMAT.md).
constexpr std::string_view kWithoutCall = "(no call in the recording)";

// The ranges of one thread that are open, and the stack that makes paths of them.
struct OpenRanges {
  OpenRanges(RangePathTable& table, const ProcessRanges& process) : stack(table, process) {}
  RangeStack stack;
  std::vector<uint32_t> open;  // indices of Timeline::ranges, the outermost first
};

// Counters that a device's kernels have or lack together: all that count work, since none of them
// says anything of FLOP alone, and each other one.
struct CounterGroup {
  GroupId id;
  uint32_t device = 0;            // CUDA ordinal
  std::vector<uint32_t> metrics;  // indices of Timeline::metrics

  bool all_of(const Counted& kernel) const {
    return std::ranges::all_of(metrics, [&](uint32_t m) {
      return m < kernel.values.size() && std::isfinite(kernel.values[m]);
    });
  }
};

// Several recordings go to one sink, each with packets of its own numbers.
class Borrowed final : public Sink {
 public:
  explicit Borrowed(Sink& sink) : sink_(sink) {}
  bool write(std::string_view packets) override {
    bytes_ += packets.size();
    return sink_.write(packets);
  }
  bool close() override { return sink_.error().empty(); }
  const std::string& target() const override { return sink_.target(); }
  const std::string& error() const override { return sink_.error(); }

 private:
  Sink& sink_;
};

class Player {
 public:
  Player(Timeline& timeline, std::unique_ptr<Sink> sink)
      : t_(timeline),
        writer_(std::move(sink)),
        output_(
            writer_, Level::kLaunches, [] { return 0; }, [] { return 0; }) {}

  Played play();

 private:
  struct Ending {
    int64_t at_ns;
    uint32_t range;  // index of Timeline::ranges, which are in the order in which they open
    // The first to end is at the front; of several, the one that was opened last.
    bool operator<(const Ending& other) const {
      return std::tuple(-at_ns, range) < std::tuple(-other.at_ns, other.range);
    }
  };
  struct Counting {
    const Counted* counters;
    SignatureId signature;
    PathId path;
  };
  struct Placed {
    uint32_t device;
    ThreadId thread;
    StreamId stream;
    TimedLaunch launch;
  };

  void start_clock();
  void write_header();
  void write_groups();
  void push(OpenRanges&, const Range&);
  void open(uint32_t range);
  void close(uint32_t range);
  void close_until(int64_t ns);
  void open_until(int64_t ns);
  void place(const Launch&);
  void write_slice();
  void write_copies();
  void write_end();
  OpenRanges& ranges_of(uint32_t thread);
  ThreadId thread_id(uint32_t thread);
  StreamId stream_id(uint32_t stream);
  StringId domain_id(uint32_t text);
  const Signature* signature_of(const Kernel&);
  uint64_t fingerprint_of(const Counted&) const;
  void write_samples();
  uint64_t clock(int64_t ns) const { return static_cast<uint64_t>(ns - zero_ns_); }

  Timeline& t_;
  TraceWriter writer_;
  LaunchOutput output_;
  StepOutput step_output_{writer_, Level::kLaunches};
  int64_t zero_ns_ = 0, now_ns_ = 0, end_ns_ = 0;
  RangePathTable paths_;
  Steps steps_{"", [this] { return clock(now_ns_); }};
  ProcessRanges process_{paths_, nullptr, &steps_};
  SignatureTable signatures_;
  NewDefinitions tables_{signatures_, paths_};
  Definitions definitions_;
  std::vector<std::unique_ptr<OpenRanges>> threads_;  // by index of the time line
  std::vector<bool> named_, defined_;                 // its threads and streams that are defined
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, const Signature*> known_;  // signature_of()
  std::priority_queue<Ending> endings_;
  std::unordered_map<uint32_t, uint64_t> process_ranges_;  // that are open: their ids
  size_t next_ = 0;                                        // range to be opened
  PathId without_call_;
  std::vector<CounterGroup> groups_;
  std::unordered_map<const Kernel*, Counting> counted_;
  std::vector<Placed> slice_;
  std::map<uint32_t, uint64_t> launches_;  // by device
};

void Player::start_clock() {
  int64_t first = std::numeric_limits<int64_t>::max();
  const auto begins = [&](const auto& events) {
    for (const auto& e : events) first = std::min(first, e.start_ns);
  };
  begins(t_.ranges);
  begins(t_.calls);
  for (const Kernel& kernel : t_.kernels)
    if (kernel.timed()) first = std::min(first, kernel.start_ns);
  begins(t_.copies);
  zero_ns_ = first == std::numeric_limits<int64_t>::max() ? 0 : first - kBeforeFirstNs;
  now_ns_ = end_ns_ = zero_ns_;
  for (const Range& range : t_.ranges)
    if (range.end_ns < Range::kStillOpen) end_ns_ = std::max(end_ns_, range.end_ns);
}

void Player::write_header() {
  t_.process.clock_trace_ns = 0;
  t_.process.clock_realtime_ns = static_cast<uint64_t>(zero_ns_ + t_.realtime_offset_ns);
  t_.process.copies = true;
  writer_.header(t_.process, Level::kLaunches);
  for (const auto& [ordinal, info] : t_.devices) writer_.device(device_id(ordinal), info);
  write_groups();
  for (const Diagnostic& d : t_.diagnostics) writer_.diagnostic(d);
}

// A report has FLOP of a device's kernels where all their instructions were counted.
void Player::write_groups() {
  std::map<uint32_t, std::vector<bool>> known;  // by device: metrics that any kernel has
  for (const Counted& counted : t_.counted) {
    std::vector<bool>& metrics = known[t_.streams[t_.kernels[counted.kernel].stream].device];
    metrics.resize(t_.metrics.size());
    for (size_t m = 0; m < counted.values.size(); ++m)
      metrics[m] = metrics[m] || std::isfinite(counted.values[m]);
  }
  for (const auto& [device, metrics] : known) {
    CounterGroup work{{}, device, {}};
    std::vector<CounterGroup> others;
    for (uint32_t m = 0; m < metrics.size(); ++m) {
      if (metrics[m] && counts_work(t_.metrics[m]))
        work.metrics.push_back(m);
      else if (metrics[m])
        others.push_back({{}, device, {m}});
    }
    others.push_back(work);
    bool complete = false;
    for (CounterGroup& group : others) {
      if (group.metrics.empty()) continue;
      group.id = GroupId{static_cast<uint32_t>(groups_.size() + 1)};
      MetricGroupPlan plan;
      for (const uint32_t m : group.metrics) plan.metrics.push_back(t_.metrics[m]);
      plan.required = std::ranges::all_of(
          instruction_counters(t_.devices[device]), [&](const std::string& name) {
            return std::ranges::find(plan.metrics, name) != plan.metrics.end();
          });
      plan.instrumented = plan.required;
      plan.name = &group == &others.back() ? "recorded" : plan.metrics.front();
      writer_.metric_group(group.id, device_id(device), plan);
      groups_.push_back(group);
      complete = complete || plan.required;
    }
    if (!complete)
      t_.warn("import.counters", "of device " + std::to_string(device) +
                                     " not all counters of instructions were read that FLOP need: "
                                     "docs/without-a-gpu.md names them");
  }
}

OpenRanges& Player::ranges_of(uint32_t thread) {
  if (threads_.size() <= thread) threads_.resize(thread + 1);
  if (!threads_[thread]) threads_[thread] = std::make_unique<OpenRanges>(paths_, process_);
  return *threads_[thread];
}

StringId Player::domain_id(uint32_t text) {
  return text == 0 ? StringId{} : paths_.intern_string(t_.texts[text]);
}

void Player::push(OpenRanges& thread, const Range& range) {
  const Name& name = t_.names[range.name];
  if (name.domain != 0) {
    thread.stack.push(domain_id(name.domain), t_.texts[name.text]);
  } else if (const uint64_t hash = name.text + 1;
             !thread.stack.push_known(hash, range.sequence_plus_1)) {
    thread.stack.push_named(hash, range.sequence_plus_1, t_.texts[name.text]);
  }
}

void Player::open(uint32_t index) {
  Range& range = t_.ranges[index];
  close_until(range.start_ns);
  now_ns_ = range.start_ns;
  if (range.of_process()) {
    const Name& name = t_.names[range.name];
    process_ranges_[index] = process_.start(domain_id(name.domain), t_.texts[name.text]);
  } else {
    OpenRanges& thread = ranges_of(range.thread);
    if (!thread.open.empty() && t_.unit_ns > 1) {
      const int64_t around = t_.ranges[thread.open.back()].end_ns;
      if (range.end_ns > around && range.end_ns <= around + kRoundedUnits * t_.unit_ns)
        range.end_ns = around;
    }
    push(thread, range);
    thread.open.push_back(index);
  }
  endings_.push({range.end_ns, index});
}

// A stack takes ranges back in their order. Ranges that a file says to overlap are closed and
// opened again around the one that ends.
void Player::close(uint32_t index) {
  const Range& range = t_.ranges[index];
  now_ns_ = range.end_ns;
  if (range.of_process()) {
    process_.end(process_ranges_[index]);
    process_ranges_.erase(index);
    return;
  }
  OpenRanges& thread = ranges_of(range.thread);
  const auto at = std::ranges::find(thread.open, index);
  for (auto above = thread.open.end(); above != at; --above)
    thread.stack.pop(domain_id(t_.names[t_.ranges[*(above - 1)].name].domain));
  for (auto above = at + 1; above != thread.open.end(); ++above) push(thread, t_.ranges[*above]);
  thread.open.erase(at);
}

void Player::close_until(int64_t ns) {
  while (!endings_.empty() && endings_.top().at_ns <= ns) {
    const uint32_t range = endings_.top().range;
    endings_.pop();
    close(range);
  }
}

void Player::open_until(int64_t ns) {
  for (; next_ < t_.ranges.size() && t_.ranges[next_].start_ns <= ns; ++next_)
    open(static_cast<uint32_t>(next_));
  close_until(ns);
  now_ns_ = ns;
}

ThreadId Player::thread_id(uint32_t thread) {
  const ThreadId id{thread + 1};
  if (named_.size() <= thread) named_.resize(thread + 1);
  if (!named_[thread]) {
    named_[thread] = true;
    const Thread& t = t_.threads[thread];
    definitions_.threads.push_back({id, static_cast<uint32_t>(t.id), paths_.intern_string(t.name)});
  }
  return id;
}

StreamId Player::stream_id(uint32_t stream) {
  const StreamId id{stream + 1};
  if (defined_.size() <= stream) defined_.resize(stream + 1);
  if (!defined_[stream]) {
    defined_[stream] = true;
    const Stream& s = t_.streams[stream];
    definitions_.streams.push_back({id, device_id(s.device), s.context, s.stream, false});
  }
  return id;
}

// Parameters would tell launches apart that do other work.
uint64_t Player::fingerprint_of(const Counted& counted) const {
  std::vector<double> work;
  for (size_t m = 0; m < counted.values.size(); ++m)
    if (counts_work(t_.metrics[m])) work.push_back(counted.values[m]);
  return XXH3_64bits(work.data(), work.size() * sizeof(double));
}

const Signature* Player::signature_of(const Kernel& kernel) {
  const auto counted = counted_.find(&kernel);
  const bool is_counted = counted != counted_.end();
  const uint64_t fingerprint = is_counted ? fingerprint_of(*counted->second.counters) : 0;
  const auto [at, fresh] = known_.try_emplace({kernel.name, kernel.shape, fingerprint}, nullptr);
  if (!fresh) return at->second;
  const Shape shape = kernel.shape == Kernel::kNotKnown ? Shape() : t_.shapes[kernel.shape];
  FunctionInfo info;
  info.name = t_.texts[kernel.name];
  info.parameters_known = is_counted;
  info.registers_per_thread = shape.registers;
  info.static_shared_bytes = shape.static_shared_bytes;
  if (const KernelFunction* function = signatures_.intern_function(info))
    at->second = signatures_.intern_signature(*function, shape.launch, fingerprint, 0);
  return at->second;
}

void Player::place(const Launch& launch) {
  const Kernel& kernel = *launch.kernel;
  const Signature* signature = signature_of(kernel);
  Placed placed{
      device_id(t_.streams[kernel.stream].device).value, {}, stream_id(kernel.stream), {}};
  TimedLaunch& timed = placed.launch;
  timed.signature = signature != nullptr ? signature->id : SignatureId{};
  if (kernel.timed()) {
    timed.start_ns = clock(kernel.start_ns);
    timed.end_ns = clock(kernel.end_ns);
    end_ns_ = std::max(end_ns_, kernel.end_ns);
  }
  if (const Call* call = launch.call) {
    OpenRanges& thread = ranges_of(call->thread);
    placed.thread = thread_id(call->thread);
    timed.path = thread.stack.path();
    timed.sequence_plus_1 = thread.stack.sequence_plus_1();
    timed.step = thread.stack.step();
    if (!t_.only_order) timed.called_ns = clock(call->start_ns);
    timed.graph = call->graph;
    timed.call = !call->graph && thread.stack.call_begins();
    thread.stack.launch_written();
  } else {
    timed.path = without_call_;
  }
  if (const auto counted = counted_.find(&kernel); counted != counted_.end()) {
    counted->second.signature = timed.signature;
    counted->second.path = timed.path;
  }
  slice_.push_back(placed);
}

// Definitions first: columns that are full are written at once.
void Player::write_slice() {
  tables_.take(definitions_);
  writer_.definitions(definitions_);
  definitions_ = {};
  for (const Placed& p : slice_) {
    output_.add(p.device, p.thread, p.stream, p.launch);
    ++launches_[p.device];
  }
  slice_.clear();
  output_.write(false);
  step_output_.write(steps_.take(), true);
}

void Player::write_samples() {
  for (const CounterGroup& group : groups_) {
    SampleBatch batch;
    batch.group = group.id;
    for (const Counted& counted : t_.counted) {
      const Kernel& kernel = t_.kernels[counted.kernel];
      if (t_.streams[kernel.stream].device != group.device || !group.all_of(counted)) continue;
      const Counting& of = counted_.at(&kernel);
      batch.signatures.push_back(of.signature);
      batch.paths.push_back(of.path);
      batch.ordinals.push_back(0);
      for (const uint32_t m : group.metrics) batch.values.push_back(counted.values[m]);
    }
    writer_.samples(batch);
  }
}

void Player::write_copies() {
  std::ranges::sort(t_.copies, {}, &Copy::start_ns);
  CopyOutput output(writer_, Level::kLaunches);
  for (const Copy& copy : t_.copies) {
    end_ns_ = std::max(end_ns_, copy.end_ns);
    const CopyTime time{clock(copy.start_ns),     clock(copy.end_ns), copy.bytes,
                        {device_id(copy.device)}, copy.kind,          copy.pageable};
    output.add({&time, 1});
  }
  output.write(true);
}

void Player::write_end() {
  LedgerSnapshot ledger;
  for (const auto& [device, launches] : launches_)
    ledger.devices.push_back({DeviceId{device}, launches, launches, 0});
  ledger.activity_records = t_.kernels.size();
  ledger.names_cut = paths_.names_cut();
  ledger.names_generalised = paths_.names_generalised();
  ledger.ranges_overflowed = paths_.ranges_overflowed();
  writer_.ledger(ledger);
  OverheadSnapshot overhead;  // the other profiler's is not known
  if (!t_.only_order) {
    overhead.wall_ns = overhead.real_wall_ns = clock(end_ns_);
    writer_.self_overhead(overhead);
  }
  writer_.end(EndReason::kExit, t_.only_order ? 0 : clock(end_ns_));
}

Played Player::play() {
  start_clock();
  write_header();
  without_call_ = paths_.child({}, {}, kWithoutCall, RangeKind::kProcess);
  if (!t_.only_order) steps_.begin();
  std::ranges::sort(t_.ranges, {},
                    [](const Range& r) { return std::tuple(r.start_ns, -r.end_ns, r.order); });
  for (const Counted& counted : t_.counted)
    counted_[&t_.kernels[counted.kernel]] = {&counted, {}, {}};
  int64_t slice_began = zero_ns_;
  for (const Launch& launch : launches_in_order(t_)) {
    if (launch.at_ns - slice_began >= kSliceNs) {
      write_slice();
      slice_began = launch.at_ns;
    }
    open_until(launch.at_ns);
    place(launch);
  }
  open_until(Range::kStillOpen - 1);  // steps that have not ended are none
  write_slice();
  write_samples();
  write_copies();
  write_end();
  const bool whole = writer_.close();
  return {t_.kernels.size(), whole ? std::string() : writer_.sink().error()};
}

}  // namespace

Played play(Timeline& timeline, Sink& sink) {
  return Player(timeline, std::make_unique<Borrowed>(sink)).play();
}

}  // namespace flopinj::import
