#include "passes/summary/recording.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "crc32c.h"
#include "passes/router.h"
#include "reader/launch_batch.h"
#include "reader/message.h"
#include "reader/tally_batch.h"
#include "support/wide.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {
namespace {

using PacketField = trace_fields::TracePacketField;
constexpr size_t kRowsInPacket = 1U << 14;  // of at most 13 columns: far below kMaxPacketBytes

// About the bytes of a row, and of the packets that every recording has: more is right, but slower.
constexpr size_t kRowBytes = 24;
constexpr size_t kPacketBytes = 4096;

uint64_t hash_more(uint64_t hash, const void* data, size_t size) {
  return XXH3_64bits_withSeed(data, size, hash);
}

}  // namespace

void Recording::packet(const Packet& packet, uint32_t trace, size_t segment,
                       const NumberSource& numbers, const PhaseMap& phases, DamageLog& damage) {
  const std::string_view body(packet.body.data(), packet.body.size());
  switch (const auto field = static_cast<PacketField>(packet.body_field)) {
    case PacketField::header:
      header_body_ = body;
      parse_message(header_, packet.body);
      break;
    case PacketField::summary:
      parse_message(summary_, packet.body);
      break;
    case PacketField::launch_batch:
      launches(packet, trace, segment, numbers, phases, damage);
      break;
    case PacketField::tally_batch:
      tally(packet, damage);
      break;
    case PacketField::sequence_groups: {
      trace::SequenceGroups message;
      if (!parse_message(message, packet.body) || !groups_.add(message, damage))
        damage.add(Damage::kMalformedPacket);
      break;
    }
    case PacketField::steps: {
      trace::Steps message;
      if (parse_message(message, packet.body)) steps_.add(message, damage);
      break;
    }
    case PacketField::step_sums: {
      trace::StepSums message;
      if (parse_message(message, packet.body)) steps_.add(message, damage);
      break;
    }
    case PacketField::single_steps:
      known_single_steps_ = body;
      break;
    case PacketField::device_times: {
      trace::DeviceTimes message;
      if (parse_message(message, packet.body)) times_.add(message);
      break;
    }
    case PacketField::kernel_durations: {
      trace::KernelDurations message;
      if (parse_message(message, packet.body)) duration_messages_.push_back(std::move(message));
      break;
    }
    case PacketField::ledger:
      ledger(packet, damage);
      break;
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
void Recording::define(const Packet& packet) {
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

void Recording::ledger(const Packet& packet, DamageLog& damage) {
  trace::Ledger message;
  if (!parse_message(message, packet.body)) return damage.add(Damage::kMalformedPacket);
  std::string body(packet.body.data(), packet.body.size());
  if (growth_.add(message)) ledgers_.push_back(body);
  last_[PacketField::ledger] = std::move(body);
}

Recording::Sums* Recording::row(const LaunchKey& key, DamageLog& damage) {
  Sums* const found = rows_.at(key);
  if (found == nullptr) damage.add(Damage::kTableFull);
  return found;
}

void Recording::launches(const Packet& packet, uint32_t trace, size_t segment,
                         const NumberSource& numbers, const PhaseMap& phases, DamageLog& damage) {
  LaunchBatchReader batch;
  if (!batch.open(packet.body, damage)) return;
  const TraceTables& tables = numbers.tables;
  const TraceState& state = tables.traces[trace];
  batch.read(state.patterns, list_);
  batch.read_times(list_, damage);
  groups_.launches(batch.thread(), batch.stream(), list_, damage);
  if (!durations_) durations_.emplace(tables, trace);
  durations_->add(list_);
  times_.add(tables, trace, batch.stream(), segment, list_);
  if (!single_steps_) single_steps_.emplace(state.steps, kMostSingleSteps);
  if (list_.any_step) {
    const uint32_t device = tables.devices[state.device_of(batch.stream())].id;
    for (size_t i = 0; i < list_.size; ++i) single_steps_->launch(device, list_.row(i));
  }
  NumberSplit split(&numbers);
  NumberCuts tells_of(split.of(trace, batch.thread(), list_));
  // Steps that did not end are not counted, and neither are their launches.
  const auto& steps = state.steps.steps();
  uint32_t number = 0;
  bool in_step = false;
  for (size_t i = 0; i < list_.size; ++i) {
    const LaunchRow launch = list_.row(i);
    const NumberTells tells = phases.told(state.paths.get(launch.range_path), tells_of.next());
    if (launch.step != number) {
      number = launch.step;
      in_step = number != 0 && steps.contains(number);
    }
    Sums* sums = row({{batch.thread(), batch.stream(), launch.range_path, launch.signature},
                      tells,
                      launch.windowed,
                      in_step},
                     damage);
    if (sums == nullptr) continue;
    ++sums->launches;
    if (launch.graph) ++sums->graph;
    if (!launch.timed) continue;
    ++sums->timed;
    sums->times.add(ShortestLongest::of_one(launch.duration_ns));
    if (!add_saturating(sums->time_ns, launch.duration_ns)) damage.add(Damage::kOverflow);
  }
}

void Recording::tally(const Packet& packet, DamageLog& damage) {
  TallyBatchReader batch;
  if (!batch.open(packet.body, damage)) return;
  TallyRow t;
  while (batch.next(t)) {
    Sums* sums = row(
        {{t.thread, t.stream, t.range_path, t.signature}, t.number_tells, t.windowed, t.in_step},
        damage);
    if (sums == nullptr) continue;
    bool fits = add_saturating(sums->launches, t.launches);
    fits = add_saturating(sums->graph, std::min(t.graph_launches, t.launches)) && fits;
    const bool possible =
        t.timed == 0 ? t.gpu_time_ns == 0 : t.gpu_time_ns / t.timed <= kLongestKernelNs;
    if (!possible) damage.add(Damage::kBadTime);
    if (possible) fits = add_saturating(sums->timed, t.timed) && fits;
    if (possible) fits = add_saturating(sums->time_ns, t.gpu_time_ns) && fits;
    if (possible) sums->times.add(t.times);
    if (!fits) damage.add(Damage::kOverflow);
  }
}

// Beside what a damaged summary says already. What was given twice is not damaged by that.
void Recording::add_damage(const DamageLog& damage) {
  trace::Summary::Source* source = nullptr;
  for (auto& known : *summary_.mutable_source())
    if (known.file().empty()) source = &known;
  for (size_t k = 0; k < kDamageKinds; ++k) {
    const auto kind = static_cast<Damage>(k);
    uint64_t count = kind == Damage::kRepeatedPackets ? 0 : damage.count(kind);
    if (count == 0) continue;
    if (source == nullptr) source = summary_.add_source();
    const std::string code = damage_text(kind).code;
    auto& lines = *source->mutable_damage();
    auto line = std::find_if(lines.begin(), lines.end(),
                             [&](const auto& known) { return known.kind() == code; });
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

TraceOrder Recording::order() const {
  const bool lost = header_body_.empty() || summary_.header_lost();
  TraceOrder order = trace_order(lost ? nullptr : &header_);
  std::get<uint64_t>(order) = session();
  return order;
}

uint64_t Recording::launches() const {
  uint64_t all = 0;
  for (const auto& [key, sums] : rows_.entries()) add_saturating(all, sums.launches);
  return all;
}

uint64_t Recording::damage() const {
  uint64_t all = 0;
  for (const auto& source : summary_.source())
    for (const auto& line : source.damage()) add_saturating(all, line.count());
  return all;
}

std::vector<std::pair<LaunchKey, Recording::Sums>> Recording::rows_in_order() const {
  std::vector<std::pair<LaunchKey, Sums>> rows = rows_.entries();
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return rows;
}

void Recording::write(PacketField field, std::string_view body) {
  packet_.clear();
  protozero::pbf_writer writer(packet_);
  writer.add_bytes(static_cast<protozero::pbf_tag_type>(field), body.data(), body.size());
  writer.add_uint32(static_cast<protozero::pbf_tag_type>(PacketField::sequence), ++sequence_);
  const uint32_t sum = crc32c(packet_.data(), packet_.size());
  writer.add_fixed32(static_cast<protozero::pbf_tag_type>(PacketField::crc32c), sum);
  protozero::pbf_writer(bytes_).add_bytes(
      static_cast<protozero::pbf_tag_type>(trace_fields::TraceField::packet), packet_);
}

void Recording::write_rows() {
  trace::TallyBatch batch;
  const auto rows = rows_in_order();
  const bool told = std::any_of(rows.begin(), rows.end(), [](const auto& row) {
    return row.first.number_tells() != NumberTells::kNothing;
  });
  const bool any_step =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.first.in_step(); });
  const bool any_times =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.second.times.any(); });
  const auto size = static_cast<int>(std::min(rows.size(), kRowsInPacket));
  for (auto* column : {batch.mutable_thread(), batch.mutable_stream(), batch.mutable_signature(),
                       batch.mutable_range_path()})
    column->Reserve(size);
  for (auto* column : {batch.mutable_launches(), batch.mutable_timed(), batch.mutable_gpu_time_ns(),
                       batch.mutable_graph_launches(), batch.mutable_shortest_below(),
                       batch.mutable_longest_above()})
    column->Reserve(size);
  for (const auto& [key, sums] : rows) {
    batch.add_thread(key.thread());
    batch.add_stream(key.stream());
    batch.add_signature(key.signature());
    batch.add_range_path(key.range_path());
    batch.add_launches(sums.launches);
    batch.add_timed(sums.timed);
    batch.add_gpu_time_ns(sums.time_ns);
    batch.add_graph_launches(sums.graph);
    batch.add_windowed(key.windowed() ? 1 : 0);
    if (told) batch.add_number_tells(static_cast<uint32_t>(key.number_tells()));
    if (any_step) batch.add_in_step(key.in_step() ? 1 : 0);
    if (any_times) {
      const uint64_t mean = sums.time_ns / std::max<uint64_t>(1, sums.timed);
      batch.add_shortest_below(sums.times.below_mean(mean));
      batch.add_longest_above(sums.times.above_mean(mean));
    }
    if (static_cast<size_t>(batch.thread_size()) < kRowsInPacket) continue;
    write(PacketField::tally_batch, batch.SerializeAsString());
    batch.Clear();
  }
  if (batch.thread_size() > 0) write(PacketField::tally_batch, batch.SerializeAsString());
}

void Recording::write_steps() {
  const StepSums& sums = steps_.sums();
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
  write(PacketField::step_sums, message.SerializeAsString());
  if (!single_steps_message_.empty()) write(PacketField::single_steps, single_steps_message_);
}

void Recording::finish(DamageLog& damage) {
  group_messages_ = groups_.take(damage);
  single_steps_message_ = std::move(known_single_steps_);
  if (single_steps_)
    if (const auto message = single_steps_->take_message())
      single_steps_message_ = message->SerializeAsString();
  if (durations_)
    for (auto& message : durations_->messages()) duration_messages_.push_back(std::move(message));
  single_steps_.reset();  // they look at tables that end before this
  durations_.reset();
  add_damage(damage);
  if (header_.session_id() == 0) invent_session();
}

// Where a recording begins, its place among others, and whether it was seen before, are read from
// its header.
void Recording::invent_session() {
  uint64_t hash = 0;
  for (const auto& [field, body] : definitions_) hash = hash_more(hash, body.data(), body.size());
  for (const auto& [key, sums] : rows_in_order()) {
    const std::array counts{sums.launches, sums.timed, sums.time_ns, sums.graph};
    hash = hash_more(hash, counts.data(), sizeof counts);
  }
  for (const auto& message : group_messages_) {
    const std::string bytes = message.SerializeAsString();
    hash = hash_more(hash, bytes.data(), bytes.size());
  }
  header_.set_session_id(hash | 1);
  if (!header_body_.empty()) return;
  header_.set_format_major(kFormatMajor);
  header_.set_rank(-1);
  summary_.set_header_lost(true);
}

std::string Recording::bytes() {
  constexpr uint32_t kVersion = 1;
  size_t about = kPacketBytes + rows_.entries().size() * kRowBytes;
  for (const auto& [field, body] : definitions_) about += body.size();
  bytes_.reserve(about);
  header_.set_summary(true);
  write(PacketField::header, header_.SerializeAsString());
  summary_.set_version(kVersion);
  write(PacketField::summary, summary_.SerializeAsString());
  for (const auto& [field, body] : definitions_) write(field, body);
  write_rows();
  write_steps();
  for (const auto& message : times_.take())
    write(PacketField::device_times, message.SerializeAsString());
  for (const auto& message : duration_messages_)
    write(PacketField::kernel_durations, message.SerializeAsString());
  for (const auto& message : group_messages_)
    write(PacketField::sequence_groups, message.SerializeAsString());
  if (header_.level() != trace::LEVEL_LAUNCHES) ledgers_.clear();  // they replace each other
  const auto last_ledger = last_.find(PacketField::ledger);
  if (last_ledger != last_.end() && (ledgers_.empty() || ledgers_.back() != last_ledger->second))
    ledgers_.push_back(last_ledger->second);
  for (const auto& body : ledgers_) write(PacketField::ledger, body);
  for (const auto field :
       {PacketField::range_numbers, PacketField::self_overhead, PacketField::end})
    if (const auto last = last_.find(field); last != last_.end()) write(field, last->second);
  return std::move(bytes_);
}

}  // namespace flopinj::reduce
