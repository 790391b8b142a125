#include <collector/trace/step_output.h>
#include <collector/trace/trace_messages.h>
#include <collector/trace/trace_writer.h>
#include <collector/trace/utf8.h>

#include <algorithm>
#include <utility>

namespace flopinj {
namespace {

using protozero::pbf_builder;
using RevisedBuilder = pbf_builder<f::RevisedField>;

constexpr size_t kMaxSampleBytes = 1U << 20;
constexpr uint64_t kLastWordsBytes = 1'024;  // more than they take

f::Level level_of(Level level) {
  return level == Level::kTally ? f::Level::LEVEL_TALLY : f::Level::LEVEL_LAUNCHES;
}

// The padding field of `bytes` bytes in all, its length always in five: any number from
// kLeastPadding is possible.
constexpr size_t kLeastPadding = 6;
void add_padding(std::string& message, size_t bytes) {
  constexpr auto kTag = static_cast<uint32_t>(f::RevisedField::padding) << 3 | 2U;
  static_assert(kTag < 0x80);
  message.push_back(static_cast<char>(kTag));
  const size_t length = bytes - kLeastPadding;
  for (unsigned i = 0; i < 5; ++i)
    message.push_back(static_cast<char>((length >> (7 * i) & 0x7FU) | (i < 4 ? 0x80U : 0U)));
  message.append(length, '\0');
}

}  // namespace

TraceWriter::TraceWriter(std::unique_ptr<Sink> sink)
    : sink_(std::move(sink)), ok_(sink_ != nullptr) {}

template <class Fill>
void TraceWriter::packet(Fill&& fill) {
  thread_.check();
  if (!ok_) return;
  body_.clear();
  {
    PacketBuilder builder(body_);
    fill(builder);
  }
  const size_t before = framed_.size();
  seal_packet(body_, ++sequence_, framed_);
  bytes_ += framed_.size() - before;
  if (framed_.size() >= kMaxGroupBytes) flush();
}

bool TraceWriter::flush() {
  thread_.check();
  if (ok_ && !framed_.empty() && (ok_ = sink_->write(framed_))) remember_end();
  framed_.clear();
  // After what they may refer to.
  for (const Rewrite& rewrite : rewrites_)
    if (ok_) ok_ = sink_->rewrite(rewrite.offset, rewrite.framed);
  rewrites_.clear();
  return ok_;
}

// Of a group of packets that the sink has. Kept are so many as leave room for the last words
// between the oldest and the end of the file; never the file's start, so that the header stays.
void TraceWriter::remember_end() {
  ends_.push_back({bytes_, sequence_});
  while (ends_.size() > 1 && bytes_ - ends_[1].offset >= kLastWordsBytes) ends_.pop_front();
}

// The older of the two places is written, so that the newer stays whole whatever happens meanwhile.
// A message that outgrew its places gets new ones, with room for twice as much; what stays in the
// old ones has been replaced and counts no more.
template <class Fill>
void TraceWriter::revise(RevisedMessage& message, size_t room, Fill&& fill) {
  if (!ok_) return;
  revised_.clear();
  {
    RevisedBuilder builder(revised_);
    builder.add_uint32(f::RevisedField::key, message.key_);
    builder.add_uint64(f::RevisedField::revision, ++message.revision_);
    fill(builder);
  }
  const auto put = [this](PacketBuilder& p) {
    p.add_bytes(f::TracePacketField::revised, revised_);
  };
  if (!sink_->rewritable()) return packet(put);
  const size_t needed = revised_.size() + kLeastPadding;
  if (needed > message.room_) {
    message.room_ = std::max(room, 2 * needed);
    message.places_.clear();
  }
  add_padding(revised_, message.room_ - revised_.size());
  if (message.places_.size() < 2) {
    message.places_.push_back({bytes_, sequence_ + 1, message.revision_});
    return packet(put);
  }
  auto& places = message.places_;
  RevisedMessage::Place& place = places[places[0].revision < places[1].revision ? 0 : 1];
  place.revision = message.revision_;
  body_.clear();
  PacketBuilder builder(body_);
  put(builder);
  Rewrite& rewrite = rewrites_.emplace_back(Rewrite{place.offset, {}});
  seal_packet(body_, place.sequence, rewrite.framed);
  rewritten_bytes_ += rewrite.framed.size();
}

bool TraceWriter::close() {
  flush();
  if (sink_ && !sink_->close()) ok_ = false;
  return ok_;
}

void TraceWriter::header(const ProcessInfo& process, Level level) {
  using F = f::HeaderField;
  packet([&](PacketBuilder& p) {
    pbf_builder<F> h(p, f::TracePacketField::header);
    h.add_uint32(F::format_major, kFormatMajor);
    h.add_uint32(F::format_minor, kFormatMinor);
    h.add_string(F::producer, process.imported_from.empty() ? "libflopinj " FLOPINJ_VERSION
                                                            : "flopimport " FLOPINJ_VERSION);
    h.add_uint32(F::pid, process.pid);
    add_text(h, F::hostname, process.hostname);
    size_t room = kMaxTextBytes;  // of all arguments together
    for (const std::string& argument : process.command_line) {
      const std::string text = to_utf8(argument, room);
      h.add_string(F::command_line, text);
      room -= text.size();
      if (text.size() < argument.size()) break;
    }
    h.add_int32(F::rank, process.rank);
    add_text(h, F::rank_source, process.rank_source);
    h.add_enum(F::level, static_cast<int32_t>(level_of(level)));
    h.add_bool(F::simulated, process.simulated);
    h.add_uint32(F::cupti_version, process.cupti_version);
    h.add_uint32(F::driver_version, process.driver_version);
    h.add_bool(F::counters, process.counters);
    h.add_uint64(F::clock_trace_ns, process.clock_trace_ns);
    h.add_uint64(F::clock_realtime_ns, process.clock_realtime_ns);
    h.add_uint64(F::clock_monotonic_ns, process.clock_monotonic_ns);
    h.add_fixed64(F::session_id, process.session_id);
    add_text(h, F::mode, process.mode);
    h.add_bool(F::measures, process.measures);
    h.add_double(F::budget_percent, process.budget_percent);
    if (!process.choice.empty()) add_text(h, F::choice, process.choice);
    h.add_uint32(F::world_size, process.world_size);
    if (!process.job_id.empty()) {
      add_text(h, F::job_id, process.job_id);
      add_text(h, F::job_id_source, process.job_id_source);
    }
    if (process.simulated_clock) h.add_bool(F::simulated_clock, true);
    if (process.ptx_counts) h.add_bool(F::ptx_counts, true);
    h.add_bool(F::calls, true);
    if (process.copies) h.add_bool(F::copies, true);
    if (!process.imported_from.empty()) add_text(h, F::imported_from, process.imported_from);
    if (process.clock_unit_ns > 1) h.add_uint32(F::clock_unit_ns, process.clock_unit_ns);
    if (process.requeues != 0) h.add_uint32(F::requeues, process.requeues);
    if (process.restarts != 0) h.add_uint32(F::restarts, process.restarts);
    if (process.run_id != 0) h.add_fixed64(F::run_id, process.run_id);
    for (const Label& label : process.labels) {
      using L = f::HeaderLabelField;
      pbf_builder<L> l(h, F::label);
      add_text(l, L::name, label.name);
      add_text(l, L::value, label.value);
      add_text(l, L::source, label.source);
    }
  });
}

void TraceWriter::device(DeviceId id, const DeviceInfo& device) {
  using F = f::DeviceField;
  packet([&](PacketBuilder& p) {
    pbf_builder<F> d(p, f::TracePacketField::device);
    d.add_uint32(F::id, id.value);
    add_text(d, F::name, device.name);
    add_text(d, F::chip, device.chip);
    d.add_uint32(F::compute_major, device.compute_major);
    d.add_uint32(F::compute_minor, device.compute_minor);
    d.add_uint32(F::multiprocessors, device.multiprocessors);
    d.add_uint64(F::memory_bytes, device.memory_bytes);
    d.add_uint32(F::clock_khz, device.clock_khz);
    d.add_uint32(F::memory_clock_khz, device.memory_clock_khz);
    d.add_uint32(F::memory_bus_bits, device.memory_bus_bits);
    if (device.uuid != std::array<uint8_t, 16>{})
      d.add_bytes(F::uuid, reinterpret_cast<const char*>(device.uuid.data()), device.uuid.size());
  });
}

void TraceWriter::metric_group(GroupId id, DeviceId device, const MetricGroupPlan& plan) {
  using F = f::MetricGroupField;
  packet([&](PacketBuilder& p) {
    pbf_builder<F> g(p, f::TracePacketField::metric_group);
    g.add_uint32(F::id, id.value);
    g.add_uint32(F::device, device.value);
    add_text(g, F::name, plan.name);
    for (const std::string& metric : plan.metrics) add_text(g, F::metric, metric);
    g.add_bool(F::instrumented, plan.instrumented);
    g.add_bool(F::required, plan.required);
    for (const NeededIf& need : plan.needed_if) {
      using N = f::MetricGroupNeededIfField;
      pbf_builder<N> n(g, F::needed_if);
      add_text(n, N::metric, need.metric);
      if (!need.included.empty()) add_text(n, N::included, need.included);
    }
    if (!plan.unavailable.empty()) add_text(g, F::unavailable, plan.unavailable);
    if (!plan.instead_of.empty()) add_text(g, F::instead_of, plan.instead_of);
  });
}

void TraceWriter::definitions(const Definitions& definitions) {
  if (definitions.empty()) return;
  for (DefinitionPackets packets(definitions); !packets.done();)
    packet([&](PacketBuilder&) { packets.fill(body_); });
}

// Rows of the patterns from this number on; at most a batch's launches, so that they fit a packet.
void TraceWriter::patterns(uint32_t from_row) {
  using I = f::InternedField;
  using F = f::InternedPatternField;
  std::vector<uint32_t> signatures;
  Runs<uint32_t> paths, steps, calls;
  for (const PatternRow& row : patterns_.from(from_row)) {
    signatures.push_back(row.signature);
    paths.add(row.path);
    steps.add(row.step);
    calls.add(row.call ? 1 : 0);
  }
  packet([&](PacketBuilder& p) {
    pbf_builder<I> interned(p, f::TracePacketField::interned);
    pbf_builder<F> b(interned, I::patterns);
    b.add_uint32(F::first_row, from_row);
    b.add_packed_uint32(F::signature, signatures.begin(), signatures.end());
    add_runs(b, F::range_path_run, paths);
    if (!steps.trivial()) add_runs(b, F::sequence_step_run, steps);
    if (!calls.trivial()) add_runs(b, F::call_run, calls);
  });
}

void TraceWriter::launches(LaunchColumns& columns, uint64_t clock_error_ns) {
  if (columns.size() == 0) return;
  using F = f::LaunchBatchField;
  const uint32_t known = patterns_.size();
  pattern_runs_.clear();
  if (columns.any_timed())
    patterns_.code(columns.rows, columns.next_row, pattern_runs_);
  else
    pattern_runs_.push_back({0, static_cast<uint32_t>(columns.size())});
  if (patterns_.size() > known) patterns(known + 1);

  std::vector<uint32_t> signatures;  // of what is in no pattern
  Runs<uint32_t> paths, runs, calls;
  Runs<uint64_t> sequences;
  size_t at = 0;
  for (const auto& run : pattern_runs_) {
    runs.pairs.emplace_back(run.first_row, run.count);
    const size_t end = at + run.count;
    for (; at < end && run.first_row == 0; ++at) {
      signatures.push_back(columns.rows[at].signature);
      paths.add(columns.rows[at].path);
      sequences.add(columns.sequence_plus_1[at]);
      calls.add(columns.rows[at].call ? 1 : 0);
    }
    at = end;
  }
  packet([&](PacketBuilder& p) {
    pbf_builder<F> b(p, f::TracePacketField::launch_batch);
    b.add_uint32(F::thread, columns.thread.value);
    b.add_uint32(F::stream, columns.stream.value);
    b.add_packed_uint32(F::signature, signatures.begin(), signatures.end());
    add_runs(b, F::range_path_run, paths);
    if (!sequences.trivial()) add_runs(b, F::sequence_run, sequences);
    if (!calls.trivial()) add_runs(b, F::call_run, calls);
    if (columns.any_timed()) {
      b.add_uint64(F::first_start_ns, columns.first_start_ns);
      b.add_packed_sint64(F::gap_ns, columns.gap_ns.begin(), columns.gap_ns.end());
      b.add_packed_sint64(F::duration_delta_ns, columns.duration_delta_ns.begin(),
                          columns.duration_delta_ns.end());
      b.add_packed_uint32(F::untimed_delta, columns.untimed_delta.begin(),
                          columns.untimed_delta.end());
      if (columns.any_called) {
        b.add_packed_uint64(F::called_before, columns.called_before.begin(),
                            columns.called_before.end());
        b.add_packed_uint64(F::pause, columns.pause.begin(), columns.pause.end());
        if (clock_error_ns > 0) b.add_uint64(F::clock_error_ns, clock_error_ns);
      }
    }
    if (!columns.graph.trivial()) add_runs(b, F::graph_run, columns.graph);
    if (!columns.windowed.trivial()) add_runs(b, F::windowed_run, columns.windowed);
    if (!columns.step.trivial()) add_runs(b, F::step_run, columns.step);
    if (!runs.trivial()) {
      add_runs(b, F::pattern_run, runs);
      b.add_uint64(F::sequence_base, columns.sequence_base);
    }
  });
}

void TraceWriter::tallies(std::span<const TallyRow> all, uint64_t begin_ns, uint64_t end_ns) {
  while (!all.empty()) {
    const auto rows = all.first(std::min(all.size(), kMaxTallyRows));
    all = all.subspan(rows.size());
    packet([&](PacketBuilder& p) {
      add_tally(p, f::TracePacketField::tally_batch, rows, begin_ns, end_ns);
    });
  }
}

void TraceWriter::tally(RevisedMessage& message, std::span<const TallyRow> rows, uint64_t begin_ns,
                        uint64_t end_ns) {
  // Room for the sums to grow in, so that the size depends only on the number of rows.
  constexpr size_t kRowBytes = 40;
  revise(message, rows.size() * kRowBytes, [&](RevisedBuilder& r) {
    add_tally(r, f::RevisedField::tally_batch, rows, begin_ns, end_ns);
  });
}

// At most 40 bytes a step: what Steps::take() hands out fits a packet.
void TraceWriter::steps(std::span<const Step> steps) {
  static_assert(Steps::kMostEnded * 40 < kMaxPacketBytes);
  if (steps.empty()) return;
  using F = f::StepsField;
  std::vector<int32_t> numbers;
  std::vector<int64_t> gaps;
  std::vector<uint64_t> durations;
  Runs<uint32_t> paths;
  uint32_t last_number = 0;
  uint64_t last_end_ns = steps.front().start_ns;
  for (const Step& step : steps) {
    numbers.push_back(static_cast<int32_t>(step.number - std::exchange(last_number, step.number)));
    gaps.push_back(static_cast<int64_t>(step.start_ns - std::exchange(last_end_ns, step.end_ns)));
    durations.push_back(step.end_ns - step.start_ns);
    paths.add(step.path.value);
  }
  packet([&](PacketBuilder& p) {
    pbf_builder<F> b(p, f::TracePacketField::steps);
    b.add_packed_sint32(F::number_delta, numbers.begin(), numbers.end());
    b.add_packed_sint64(F::gap_ns, gaps.begin(), gaps.end());
    b.add_packed_uint64(F::duration_ns, durations.begin(), durations.end());
    add_runs(b, F::range_path_run, paths);
    b.add_uint64(F::first_start_ns, steps.front().start_ns);
  });
}

void TraceWriter::steps(RevisedMessage& message, const StepSums& sums) {
  using F = f::StepSumsField;
  constexpr size_t kRoom = 1'024;
  std::vector<uint32_t> buckets;
  std::vector<uint64_t> counts;
  for (const auto& [bucket, count] : sums.buckets) {
    buckets.push_back(bucket);
    counts.push_back(count);
  }
  revise(message, kRoom, [&](RevisedBuilder& r) {
    pbf_builder<F> b(r, f::RevisedField::step_sums);
    b.add_uint64(F::steps, sums.steps);
    b.add_uint64(F::total_ns, sums.total_ns);
    b.add_uint64(F::min_ns, sums.min_ns);
    b.add_uint64(F::max_ns, sums.max_ns);
    b.add_uint64(F::first_start_ns, sums.first_start_ns);
    b.add_uint64(F::last_end_ns, sums.last_end_ns);
    b.add_uint32(F::range_path, sums.path.value);
    b.add_packed_uint32(F::bucket, buckets.begin(), buckets.end());
    b.add_packed_uint64(F::bucket_steps, counts.begin(), counts.end());
  });
}

void TraceWriter::numbers(std::span<const RangeNumber> all) {
  packet([&](PacketBuilder& p) { add_numbers(p, f::TracePacketField::range_numbers, all); });
}

void TraceWriter::numbers(RevisedMessage& message, std::span<const RangeNumber> all) {
  revise(message, all.size() * kNumberBytes,
         [&](RevisedBuilder& r) { add_numbers(r, f::RevisedField::range_numbers, all); });
}

void TraceWriter::samples(const SampleBatch& batch) {
  using F = f::CounterSamplesField;
  const size_t samples = batch.signatures.size();
  if (samples == 0 || batch.paths.size() != samples || batch.values.size() % samples != 0) return;
  const size_t metrics = batch.values.size() / samples;
  const size_t step = std::max<size_t>(1, kMaxSampleBytes / (metrics * sizeof(double) + 10));
  for (size_t from = 0; from < samples; from += step) {
    const size_t count = std::min(step, samples - from);
    const auto ids = [from, count](const auto& list) {
      std::vector<uint32_t> values;
      for (size_t i = from; i < from + count; ++i) values.push_back(list[i].value);
      return values;
    };
    const std::vector<uint32_t> signatures = ids(batch.signatures);
    const std::vector<uint32_t> paths = ids(batch.paths);
    const double* values = batch.values.data() + from * metrics;
    packet([&](PacketBuilder& p) {
      pbf_builder<F> b(p, f::TracePacketField::counter_samples);
      b.add_uint32(F::group, batch.group.value);
      b.add_uint32(F::window, batch.window);
      b.add_packed_uint32(F::signature, signatures.begin(), signatures.end());
      b.add_packed_uint32(F::range_path, paths.begin(), paths.end());
      b.add_packed_double(F::value, values, values + count * metrics);
      if (batch.ordinals.size() == samples)
        b.add_packed_uint64(F::ordinal, batch.ordinals.data() + from,
                            batch.ordinals.data() + from + count);
    });
  }
}

void TraceWriter::ledger(const LedgerSnapshot& ledger) {
  packet([&](PacketBuilder& p) { add_ledger(p, f::TracePacketField::ledger, ledger); });
}
void TraceWriter::ledger(RevisedMessage& message, const LedgerSnapshot& ledger) {
  revise(message, 512, [&](RevisedBuilder& r) { add_ledger(r, f::RevisedField::ledger, ledger); });
}

void TraceWriter::self_overhead(const OverheadSnapshot& cost) {
  packet([&](PacketBuilder& p) { add_overhead(p, f::TracePacketField::self_overhead, cost); });
}
void TraceWriter::self_overhead(RevisedMessage& message, const OverheadSnapshot& cost) {
  revise(message, 128,
         [&](RevisedBuilder& r) { add_overhead(r, f::RevisedField::self_overhead, cost); });
}

void TraceWriter::energy(std::span<const DeviceEnergy> devices) {
  packet([&](PacketBuilder& p) { add_energy(p, f::TracePacketField::energy, devices); });
}
void TraceWriter::energy(RevisedMessage& message, std::span<const DeviceEnergy> devices) {
  revise(message, devices.size() * kEnergyBytes,
         [&](RevisedBuilder& r) { add_energy(r, f::RevisedField::energy, devices); });
}

void TraceWriter::copies(DeviceId device, std::span<const CopyInterval> times) {
  using F = f::CopiesField;
  if (times.empty()) return;
  packet([&](PacketBuilder& p) {
    pbf_builder<F> b(p, f::TracePacketField::copies);
    b.add_uint32(F::device, device.value);
    b.add_uint64(F::first_start_ns, times.front().start_ns);
    uint64_t end_ns = times.front().start_ns;
    add_column(b, F::gap_ns, times, [&](const CopyInterval& time) {
      return time.start_ns - std::exchange(end_ns, time.end_ns);
    });
    add_column(b, F::duration_ns, times,
               [](const CopyInterval& time) { return time.end_ns - time.start_ns; });
  });
}

void TraceWriter::copy_sums(std::span<const CopySum> sums) {
  packet([&](PacketBuilder& p) { add_copy_sums(p, f::TracePacketField::copy_sums, sums); });
}
void TraceWriter::copy_sums(RevisedMessage& message, std::span<const CopySum> sums) {
  revise(message, sums.size() * kCopySumBytes,
         [&](RevisedBuilder& r) { add_copy_sums(r, f::RevisedField::copy_sums, sums); });
}

namespace {

void add_diagnostic(PacketBuilder& packet, const Diagnostic& said) {
  using F = f::DiagnosticField;
  pbf_builder<F> d(packet, f::TracePacketField::diagnostic);
  d.add_enum(F::severity, static_cast<int32_t>(said.severity));
  add_text(d, F::code, said.code);
  add_text(d, F::message, said.message);
  d.add_uint64(F::time_ns, said.time_ns);
  if (said.times <= 1) return;
  d.add_uint64(F::times, said.times);
  if (said.last_message.empty()) return;
  add_text(d, F::last_message, said.last_message);
  d.add_uint64(F::last_time_ns, said.last_time_ns);
}

void add_end(PacketBuilder& packet, EndReason reason, uint64_t time_ns, uint64_t packets) {
  using F = f::EndField;
  pbf_builder<F> e(packet, f::TracePacketField::end);
  e.add_uint64(F::time_ns, time_ns);
  e.add_enum(F::reason, static_cast<int32_t>(reason));
  e.add_uint64(F::packets, packets);
}

}  // namespace

void TraceWriter::diagnostic(const Diagnostic& said) {
  packet([&](PacketBuilder& p) { add_diagnostic(p, said); });
}

void TraceWriter::end(EndReason reason, uint64_t time_ns) {
  const uint64_t before = sequence_;
  packet([&](PacketBuilder& p) { add_end(p, reason, time_ns, before); });
}

void TraceWriter::last_words(const Diagnostic& why, uint64_t until_ns) {
  if (ok_ || sink_ == nullptr) return;
  const auto behind = [&](uint32_t written) {
    std::string error, end, framed;
    {
      PacketBuilder packet(error);
      add_diagnostic(packet, why);
    }
    seal_packet(error, written + 1, framed);
    {
      PacketBuilder packet(end);
      add_end(packet, EndReason::kFailure, until_ns, written + 1);
    }
    seal_packet(end, written + 2, framed);
    return framed;
  };
  // A write that failed has filled the room that was left, and was cut back: most often there is
  // room for a few bytes.
  for (auto end = ends_.rbegin(); end != ends_.rend(); ++end)
    if (sink_->write_last(end->offset, behind(end->packets))) return;
}

}  // namespace flopinj
