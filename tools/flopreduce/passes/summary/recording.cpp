#include "passes/summary/recording.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <tuple>

#include "passes/router.h"
#include "passes/rows/busy_interval.h"
#include "passes/rows/copies.h"
#include "passes/rows/device_times.h"
#include "passes/rows/step_kernels.h"
#include "reader/message.h"
#include "support/members.h"
#include "support/wide.h"

namespace flopinj::reduce {
namespace {

using PacketField = trace_fields::TracePacketField;
constexpr size_t kRowsInPacket = 1U << 14;  // of at most 14 columns: far below kMaxPacketBytes

// About the bytes of a row, and of the packets that every recording has: more is right, but slower.
constexpr size_t kRowBytes = 24;
constexpr size_t kPacketBytes = 4096;

}  // namespace

Condenser::Condenser(SharedTables& shared, const KernelNumbers& kernels, const PhaseMap& phases,
                     const Revisions& revisions, DamageLog& damage)
    : tables_(shared.tables()),
      phases_(phases),
      revisions_(revisions),
      damage_(damage),
      pass_(shared, this),
      kernels_(tables_, kernels),
      patterns_(tables_.traces[0].patterns),
      single_(tables_.traces[0].steps, kMostSingleSteps) {}

void Condenser::segment(const Segment& segment) {
  file_ = segment.file;
  append_times(busy_, tables_, 0, pass_.segment(segment, damage_));
}

void Condenser::launches(const RowTable& rows, const LaunchPiece& piece) {
  kernels_.launches(rows, piece);
  if (of_rows_.size() < rows.size()) of_rows_.resize(rows.size());
  for (size_t i = 0; piece.windowed && i < piece.size; ++i)
    if (piece.duration_ns[i] != LaunchPiece::kNoTime)
      of_rows_[piece.row[i]].add(ShortestLongest::of_one(piece.duration_ns[i]));
  single_.launches(tables_, rows, piece);
  if (piece.step != 0) add_kernels(rows, piece, step_kernels_);
  add_to_time_lines(rows, piece);
}

// All launches of a piece are of one device.
void Condenser::add_to_time_lines(const RowTable& rows, const LaunchPiece& piece) {
  const auto has_place = [&](size_t i) {
    return piece.row[i] != RowTable::kDiscard && piece.duration_ns[i] != LaunchPiece::kNoTime &&
           BusyInterval::has_place(piece.start_ns[i], piece.duration_ns[i]);
  };
  size_t first = 0;
  while (first < piece.size && !has_place(first)) ++first;
  if (first == piece.size) return;
  TimeLine& line =
      time_lines_.try_emplace(rows.info(piece.row[first]).device, most_open_intervals(tables_, 0))
          .first->second;
  if (piece.calls) line.at_once.clock_error(piece.clock_error_ns);
  auto pause = piece.pauses.begin();
  line.add(piece.size - first, [&](LaunchInTime* const to) {
    size_t written = 0;
    for (size_t i = first; i < piece.size; ++i) {
      if (!has_place(i)) continue;
      const uint32_t called_before = piece.calls ? piece.called_before[i] : 0;
      LaunchInTime& launch = to[written++];
      launch = {piece.start_ns[i], piece.duration_ns[i], piece.row[i], piece.step, called_before, 0,
                piece.windowed};
      while (pause != piece.pauses.end() && pause->at < i) ++pause;
      if (called_before == 0 || pause == piece.pauses.end() || pause->at != i ||
          tables_.traces[0].path(pause->path) == kNoIndex)
        continue;
      launch.set_pause(
          line.at_once.add_pause(launch, pause->path, pause->since_ns, pause->length_ns));
    }
    return written;
  });
}

void Condenser::batch(uint32_t, const LaunchBatchReader& batch) {
  any_batch_ = true;
  sequences_.launches(batch, patterns_, damage_);
}

void Condenser::tally(const RowTable& rows, uint32_t row, const TallyRow& tally) {
  if (of_rows_.size() < rows.size()) of_rows_.resize(rows.size());
  if (tally.has_possible_time()) of_rows_[row].add(tally.times);
}

void Condenser::packet(uint32_t trace, const Packet& packet) {
  Packet newest = packet;
  if (!revisions_.counts(trace, file_, newest)) return;
  if (newest.is_batch())
    pass_.tally(trace, newest, damage_);
  else
    keep(newest);
}

void Condenser::keep(const Packet& packet) {
  const std::string_view body(packet.body.data(), packet.body.size());
  // Calls use(message) where the packet holds one.
  const auto read = [&](auto message, auto&& use) {
    if (parse_message(message, packet.body)) use(message);
  };
  const auto add_steps = [&](auto& message) { steps_.add(message, damage_); };
  switch (const auto field = static_cast<PacketField>(packet.body_field)) {
    case PacketField::header:
      has_header_ = !body.empty();
      parse_message(header_, packet.body);
      break;
    case PacketField::summary:
      parse_message(summary_, packet.body);
      break;
    case PacketField::sequence_groups: {
      trace::SequenceGroups message;
      if (!parse_message(message, packet.body) || !sequences_.add(message, damage_))
        damage_.add(Damage::kMalformedPacket);
      break;
    }
    case PacketField::steps:
      read(trace::Steps(), add_steps);
      break;
    case PacketField::step_sums:
      read(trace::StepSums(), add_steps);
      break;
    case PacketField::single_steps:
      single_steps_ = body;
      break;
    case PacketField::device_times:
      read(trace::DeviceTimes(), [&](auto& message) { times_[message.device()] = message; });
      break;
    case PacketField::copies: {
      const auto add = [&](uint32_t device, uint64_t begin_ns, uint64_t ns) {
        time_lines_.try_emplace(device, most_open_intervals(tables_, 0))
            .first->second.add(LaunchInTime::copy(begin_ns, ns));
      };
      damage_.add(Damage::kBadTime, for_each_copy(tables_, 0, packet, add));
      break;
    }
    case PacketField::at_once:
      read(trace::AtOnce(), [&](auto& message) { at_once_[message.device()] = message; });
      break;
    case PacketField::kernel_durations:
      read(trace::KernelDurations(),
           [&](auto& message) { durations_.push_back(std::move(message)); });
      break;
    case PacketField::ledger:
      ledger(packet);
      break;
    case PacketField::energy:
      read(trace::Energy(), [&](const auto& message) { energy_.add(message); });
      last_[field] = body;
      break;
    case PacketField::copy_sums:
    case PacketField::self_overhead:
    case PacketField::range_numbers:
    case PacketField::end:
      last_[field] = body;
      break;
    case PacketField::interned:
      define(packet);
      break;
    case PacketField::counter_samples:
    case PacketField::diagnostic:
    case PacketField::metric_group:
    case PacketField::device:
      definitions_.emplace_back(field, body);
      break;
    default:
      break;
  }
}

// Patterns are for launches, which a summary does not have.
void Condenser::define(const Packet& packet) {
  constexpr auto kPatterns =
      static_cast<protozero::pbf_tag_type>(trace_fields::InternedField::patterns);
  std::string kept;
  bool any_left_out = false;
  try {
    protozero::pbf_reader reader(packet.body);
    const char* const end = packet.body.data() + packet.body.size();
    const char* begin = packet.body.data();
    while (reader.next()) {
      const bool pattern = reader.tag() == kPatterns;
      reader.skip();
      const char* const next = end - reader.length();
      if (!pattern) kept.append(begin, next);
      any_left_out = any_left_out || pattern;
      begin = next;
    }
  } catch (const protozero::exception&) {
    kept.assign(packet.body.data(), packet.body.size());  // damaged in the summary, too
  }
  if (!any_left_out || !kept.empty()) definitions_.emplace_back(PacketField::interned, kept);
}

void Condenser::ledger(const Packet& packet) {
  trace::Ledger message;
  if (!parse_message(message, packet.body)) return damage_.add(Damage::kMalformedPacket);
  std::string body(packet.body.data(), packet.body.size());
  if (growth_.add(message)) ledgers_.push_back(body);
  last_[PacketField::ledger] = std::move(body);
}

void Condenser::take_rows() {
  RowTable& table = pass_.rows();
  std::vector<Row> rows;
  rows.reserve(table.size());
  for (uint32_t i = 0; i < table.size(); ++i) {
    const RowTable::Hot& hot = table.hot()[i];
    const RowTable::Info& info = table.info(i);
    const Counts& other = info.other;
    const uint64_t launches = hot.timed + other.launches;
    if (i == RowTable::kDiscard) {
      damage_.add(Damage::kTableFull, launches);
      continue;
    }
    Row row{i,
            table.lane_of(info),
            info.path_id,
            info.signature_id,
            launches,
            hot.timed,
            hot.time_ns,
            other.graph,
            info.call ? launches : other.calls,
            of_rows_[i]};
    row.times.add(kernels_.times(i));
    row.lane.tells = phases_.told(tables_.traces[0].paths.get(info.path_id), row.lane.tells);
    for (const uint64_t timed : {other.timed, other.windowed_timed})
      add_saturating(row.timed, timed);
    for (const uint64_t ns : {other.time_ns, other.windowed_time_ns})
      add_saturating(row.time_ns, ns);
    rows.push_back(row);
  }
  if (pass_.overflow()) damage_.add(Damage::kOverflow);
  const auto place = [](const Row& r) {
    const LaunchLane& lane = r.lane;
    return std::tuple(lane.thread, lane.stream, r.path, r.signature, lane.windowed, lane.in_step,
                      lane.tells);
  };
  std::ranges::sort(rows, {}, place);
  row_numbers_.resize(table.size());
  for (const Row& row : rows) {  // numbers may tell of several what their path tells
    const bool fresh = rows_.empty() || place(rows_.back()) != place(row);
    if (fresh) rows_.push_back(row);
    row_numbers_[row.of_pass] = static_cast<uint32_t>(rows_.size() - 1);
    if (fresh) continue;
    const auto sums = [](auto& r) {
      return std::tie(r.launches, r.timed, r.time_ns, r.graph, r.calls);
    };
    add_each(sums(rows_.back()), sums(row));
    rows_.back().times.add(row.times);
  }
}

// Of several ids of one signature the lowest.
std::vector<uint32_t> Condenser::signature_ids() {
  std::vector<uint32_t> ids(tables_.signatures.size(), 0);
  const RowTable& rows = pass_.rows();
  for (uint32_t i = RowTable::kDiscard + 1; i < rows.size(); ++i) {
    const RowTable::Info& info = rows.info(i);
    uint32_t& id = ids[info.signature];
    if (id == 0 || info.signature_id < id) id = info.signature_id;
  }
  return ids;
}

void Condenser::take_device_times() {
  const std::vector<uint32_t> signatures = signature_ids();
  for (auto& [device, track] : busy_) {
    DeviceTime time = pass_.device(device);
    if (time.placed == 0) continue;
    time.busy = track.take();
    const uint32_t id = tables_.devices[device].id;
    times_[id] = device_times_message(id, time, signatures);
  }
  for (auto& [device, line] : time_lines_) {
    line.in_order.end(line);
    const uint32_t id = tables_.devices[device].id;
    const auto sums = line.at_once.take(row_numbers_, static_cast<uint32_t>(rows_.size()));
    if (!sums || !times_.contains(id)) continue;
    times_[id].set_at_once(true);
    at_once_[id] = sums->message(id);
  }
}

// Of a recording, with the kernels that ran on. A summary has sums already, and no single steps.
void Condenser::take_steps() {
  step_sums_ = steps_.sums();
  if (steps_.steps().empty()) return;
  const bool comparable = !header_.simulated() || header_.simulated_clock();
  const StepSpans spans =
      comparable ? spans_of(steps_.steps(), step_kernels_) : spans_of(steps_.steps());
  step_sums_ = sums_of(spans);
  if (!any_batch_) return;
  if (const auto message = single_.take_message(spans, energy_))
    single_steps_ = message->SerializeAsString();
}

// Beside what a damaged summary says already. What was given twice is not damaged by that.
void Condenser::say_damage() {
  trace::Summary::Source* source = nullptr;
  for (auto& known : *summary_.mutable_source())
    if (known.file().empty()) source = &known;
  for (size_t k = 0; k < kDamageKinds; ++k) {
    const auto kind = static_cast<Damage>(k);
    uint64_t count = kind == Damage::kRepeatedPackets ? 0 : damage_.count(kind);
    if (count == 0) continue;
    if (source == nullptr) source = summary_.add_source();
    const std::string code = damage_text(kind).code;
    auto& lines = *source->mutable_damage();
    auto line = std::ranges::find(lines, code, [](const auto& known) { return known.kind(); });
    if (line != lines.end()) {
      add_saturating(count, line->count());
      line->set_count(count);
      continue;
    }
    auto* added = source->add_damage();
    added->set_kind(code);
    added->set_count(count);
  }
}

// Where a recording begins, its place among others, and whether it was seen before, are read from
// its header.
uint64_t Condenser::invented_session() {
  uint64_t hash = 0;
  const auto add = [&](const void* data, size_t size) {
    hash = XXH3_64bits_withSeed(data, size, hash);
  };
  for (const auto& [field, body] : definitions_) add(body.data(), body.size());
  for (const auto& row : rows_) {
    const std::array counts{row.launches, row.timed, row.time_ns, row.graph};
    add(counts.data(), sizeof counts);
  }
  for (const auto& message : groups_) {
    const std::string bytes = message.SerializeAsString();
    add(bytes.data(), bytes.size());
  }
  return hash | 1;
}

void Condenser::write(PacketField field, std::string_view body) {
  append_packet(bytes_, static_cast<uint32_t>(field), body, ++sequence_);
}

void Condenser::write_rows() {
  trace::TallyBatch batch;
  const auto any = [this](auto&& has) { return std::any_of(rows_.begin(), rows_.end(), has); };
  const bool told = any([](const auto& r) { return r.lane.tells != NumberTells::kNothing; });
  const bool any_step = any([](const auto& r) { return r.lane.in_step; });
  const bool any_calls = any([](const auto& r) { return r.calls > 0; });
  const bool any_times = any([](const auto& r) { return r.times.any(); });
  const auto size = static_cast<int>(std::min(rows_.size(), kRowsInPacket));
  for (auto* column : {batch.mutable_thread(), batch.mutable_stream(), batch.mutable_signature(),
                       batch.mutable_range_path()})
    column->Reserve(size);
  for (auto* column : {batch.mutable_launches(), batch.mutable_timed(), batch.mutable_gpu_time_ns(),
                       batch.mutable_graph_launches(), batch.mutable_shortest_below(),
                       batch.mutable_longest_above()})
    column->Reserve(size);
  for (const auto& row : rows_) {
    batch.add_thread(row.lane.thread);
    batch.add_stream(row.lane.stream);
    batch.add_signature(row.signature);
    batch.add_range_path(row.path);
    batch.add_launches(row.launches);
    batch.add_timed(row.timed);
    batch.add_gpu_time_ns(row.time_ns);
    batch.add_graph_launches(row.graph);
    batch.add_windowed(row.lane.windowed ? 1 : 0);
    if (told) batch.add_number_tells(static_cast<uint32_t>(row.lane.tells));
    if (any_step) batch.add_in_step(row.lane.in_step ? 1 : 0);
    if (any_calls) batch.add_calls(row.calls);
    if (any_times) {
      const uint64_t mean = row.time_ns / std::max<uint64_t>(1, row.timed);
      batch.add_shortest_below(row.times.below_mean(mean));
      batch.add_longest_above(row.times.above_mean(mean));
    }
    if (static_cast<size_t>(batch.thread_size()) < kRowsInPacket) continue;
    write(PacketField::tally_batch, batch.SerializeAsString());
    batch.Clear();
  }
  if (batch.thread_size() > 0) write(PacketField::tally_batch, batch.SerializeAsString());
}

void Condenser::write_steps() {
  const StepSums& sums = step_sums_;
  if (sums.steps == 0) return;
  trace::StepSums message;
  message.set_steps(sums.steps);
  message.set_total_ns(sums.total_ns);
  message.set_min_ns(sums.min_ns);
  message.set_max_ns(sums.max_ns);
  message.set_first_start_ns(sums.first_start_ns);
  message.set_last_end_ns(sums.last_end_ns);
  message.set_range_path(sums.path);
  for (const auto& [bucket, count] : sums.buckets) {
    message.add_bucket(bucket);
    message.add_bucket_steps(count);
  }
  message.set_kernels_timed(sums.kernels_timed);
  message.set_window_ns(sums.window_ns);
  write(PacketField::step_sums, message.SerializeAsString());
  if (!single_steps_.empty()) write(PacketField::single_steps, single_steps_);
}

void Condenser::write_all() {
  constexpr uint32_t kVersion = 2;
  size_t about = kPacketBytes + rows_.size() * kRowBytes;
  for (const auto& [field, body] : definitions_) about += body.size();
  bytes_.reserve(about);
  header_.set_summary(true);
  write(PacketField::header, header_.SerializeAsString());
  summary_.set_version(kVersion);
  write(PacketField::summary, summary_.SerializeAsString());
  for (const auto& [field, body] : definitions_) write(field, body);
  write_rows();
  write_steps();
  for (const auto& [device, message] : times_)
    write(PacketField::device_times, message.SerializeAsString());
  for (const auto& [device, message] : at_once_)
    write(PacketField::at_once, message.SerializeAsString());
  for (const auto& message : durations_)
    write(PacketField::kernel_durations, message.SerializeAsString());
  for (const auto& message : groups_)
    write(PacketField::sequence_groups, message.SerializeAsString());
  if (header_.level() != trace::LEVEL_LAUNCHES) ledgers_.clear();  // they replace each other
  const auto last_ledger = last_.find(PacketField::ledger);
  if (last_ledger != last_.end() && (ledgers_.empty() || ledgers_.back() != last_ledger->second))
    ledgers_.push_back(last_ledger->second);
  for (const auto& body : ledgers_) write(PacketField::ledger, body);
  for (const auto field : {PacketField::energy, PacketField::copy_sums, PacketField::range_numbers,
                           PacketField::self_overhead, PacketField::end})
    if (const auto last = last_.find(field); last != last_.end()) write(field, last->second);
}

Recording Condenser::take() {
  take_rows();
  groups_ = sequences_.take(damage_);
  take_steps();
  for (auto& message : kernels_.messages(pass_.rows())) durations_.push_back(std::move(message));
  take_device_times();
  say_damage();
  if (header_.session_id() == 0) {
    header_.set_session_id(invented_session());
    if (!has_header_) {
      header_.set_format_major(kFormatMajor);
      header_.set_rank(-1);
      summary_.set_header_lost(true);
    }
  }
  Recording made;
  made.session = header_.session_id();
  made.ended = last_.contains(PacketField::end);
  const bool lost = !has_header_ || summary_.header_lost();
  made.order = trace_order(lost ? nullptr : &header_);
  std::get<uint64_t>(made.order) = made.session;
  for (const auto& row : rows_) add_saturating(made.launches, row.launches);
  for (const auto& source : summary_.source())
    for (const auto& line : source.damage()) add_saturating(made.damage, line.count());
  write_all();
  made.bytes = std::move(bytes_);
  return made;
}

}  // namespace flopinj::reduce
