#include "passes/condense.h"

#include <algorithm>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "crc32c.h"
#include "flop_trace_fields.h"
#include "passes/definitions.h"
#include "passes/revisions.h"
#include "passes/router.h"
#include "passes/rows/number_split.h"
#include "passes/sequence/sequence_groups.h"
#include "passes/sequence/sequence_pass.h"
#include "passes/trace_order.h"
#include "reader/launch_batch.h"
#include "reader/message.h"
#include "reader/patterns.h"
#include "reader/tally_batch.h"
#include "tables/coverage_growth.h"
#include "tables/totals.h"

namespace flopinj::reduce {
namespace {

using PacketField = trace_fields::TracePacketField;
constexpr size_t kMaxRowsOfRecording = 1U << 20;
constexpr size_t kRowsInPacket = 1U << 14;  // of at most 11 columns: far below kMaxPacketBytes

// One recorded process.
class Recording {
 public:
  // `trace`: its index in the tables of the numbers.
  void packet(const Packet& packet, uint32_t trace, const NumberSource& numbers,
              const PhaseMap& phases, DamageLog& damage);
  void add_source(const std::string& file, const DamageLog& damage, bool has_own_damage);
  void finish(DamageLog& damage);
  std::string bytes();                                       // once it is finished
  uint64_t session() const { return header_.session_id(); }  // the same
  // As the reducer orders its inputs; those without a header by their file.
  auto order() const {
    const bool lost = header_body_.empty() || summary_.header_lost();
    return std::tuple(trace_order(lost ? nullptr : &header_),
                      summary_.source_size() > 0 ? summary_.source(0).file() : "");
  }

 private:
  // A row as the trace's own ids name it.
  struct Key {
    uint32_t thread = 0, stream = 0, range_path = 0, signature = 0;
    bool windowed = false;
    bool in_step = false;
    NumberTells number_tells = NumberTells::kNothing;
    auto operator<=>(const Key&) const = default;
  };
  struct Sums {
    uint64_t launches = 0, timed = 0, time_ns = 0, graph = 0;
  };
  void launches(const Packet& packet, uint32_t trace, const NumberSource& numbers,
                const PhaseMap& phases, DamageLog& damage);
  void tally(const Packet& packet, DamageLog& damage);
  void define(const Packet& packet);
  void ledger(const Packet& packet, DamageLog& damage);
  Sums* row(const Key& key, DamageLog& damage);
  void write(PacketField field, std::string_view body);
  void write_rows();
  void write_steps();
  void invent_session();

  trace::Header header_;
  std::string header_body_;
  trace::Summary summary_;
  std::vector<std::pair<PacketField, std::string>> definitions_;
  std::map<Key, Sums> rows_;
  SequenceGroups groups_;
  StepTable steps_;
  std::vector<trace::SequenceGroups> group_messages_;
  CoverageGrowth growth_;
  std::vector<std::string> ledgers_;         // in which coverage grew
  std::map<PacketField, std::string> last_;  // messages of which the last one counts
  std::string bytes_;
  uint32_t sequence_ = 0;
};

void Recording::packet(const Packet& packet, uint32_t trace, const NumberSource& numbers,
                       const PhaseMap& phases, DamageLog& damage) {
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
      launches(packet, trace, numbers, phases, damage);
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
  trace::Interned message;
  if (!parse_message(message, packet.body) || message.patterns_size() == 0) {
    definitions_.emplace_back(PacketField::interned,
                              std::string(packet.body.data(), packet.body.size()));
    return;
  }
  message.clear_patterns();
  if (message.ByteSizeLong() > 0)
    definitions_.emplace_back(PacketField::interned, message.SerializeAsString());
}

void Recording::ledger(const Packet& packet, DamageLog& damage) {
  trace::Ledger message;
  if (!parse_message(message, packet.body)) return damage.add(Damage::kMalformedPacket);
  std::string body(packet.body.data(), packet.body.size());
  if (growth_.add(message)) ledgers_.push_back(body);
  last_[PacketField::ledger] = std::move(body);
}

Recording::Sums* Recording::row(const Key& key, DamageLog& damage) {
  const auto found = rows_.find(key);
  if (found != rows_.end()) return &found->second;
  if (rows_.size() < kMaxRowsOfRecording) return &rows_[key];
  damage.add(Damage::kTableFull);
  return nullptr;
}

void Recording::launches(const Packet& packet, uint32_t trace, const NumberSource& numbers,
                         const PhaseMap& phases, DamageLog& damage) {
  LaunchBatchReader batch;
  if (!batch.open(packet.body, damage)) return;
  const PatternTable& patterns = numbers.tables.traces[trace].patterns;
  groups_.launches(batch, patterns, damage);
  NumberSplit split(&numbers);
  NumberCuts tells_of(split.of(trace, batch));
  // Steps that did not end are not counted, and neither are their launches.
  const auto& steps = numbers.tables.traces[trace].steps.steps();
  uint32_t number = 0;
  bool in_step = false;
  batch.for_each(patterns, damage, [&](const LaunchRow& launch) {
    const NumberTells tells =
        phases.told(numbers.tables.traces[trace].paths.get(launch.range_path), tells_of.next());
    if (launch.step != number) {
      number = launch.step;
      in_step = number != 0 && steps.contains(number);
    }
    Sums* sums = row({batch.thread(), batch.stream(), launch.range_path, launch.signature,
                      launch.windowed, in_step, tells},
                     damage);
    if (sums == nullptr) return;
    ++sums->launches;
    if (launch.graph) ++sums->graph;
    if (!launch.timed) return;
    ++sums->timed;
    if (!add_saturating(sums->time_ns, launch.duration_ns)) damage.add(Damage::kOverflow);
  });
}

void Recording::tally(const Packet& packet, DamageLog& damage) {
  TallyBatchReader batch;
  if (!batch.open(packet.body, damage)) return;
  TallyRow t;
  while (batch.next(t)) {
    Sums* sums =
        row({t.thread, t.stream, t.range_path, t.signature, t.windowed, t.in_step, t.number_tells},
            damage);
    if (sums == nullptr) continue;
    bool fits = add_saturating(sums->launches, t.launches);
    fits = add_saturating(sums->graph, std::min(t.graph_launches, t.launches)) && fits;
    const bool possible =
        t.timed == 0 ? t.gpu_time_ns == 0 : t.gpu_time_ns / t.timed <= kLongestKernelNs;
    if (!possible) damage.add(Damage::kBadTime);
    if (possible) fits = add_saturating(sums->timed, t.timed) && fits;
    if (possible) fits = add_saturating(sums->time_ns, t.gpu_time_ns) && fits;
    if (!fits) damage.add(Damage::kOverflow);
  }
}

// A summary's own file is no source, unless it is damaged.
void Recording::add_source(const std::string& file, const DamageLog& damage, bool has_own_damage) {
  // What was given twice is not damaged by that.
  const auto count = [&](Damage kind) {
    return has_own_damage && kind != Damage::kRepeatedPackets ? damage.count(kind) : 0;
  };
  bool any = false;
  for (size_t k = 0; k < kDamageKinds; ++k) any = any || count(static_cast<Damage>(k)) > 0;
  const auto same = [&](const auto& source) { return source.file() == file; };
  const auto& sources = summary_.source();
  if (std::any_of(sources.begin(), sources.end(), same)) return;  // a file given twice
  if (summary_.version() != 0 && !any) return;
  auto* source = summary_.add_source();
  source->set_file(file);
  for (size_t k = 0; any && k < kDamageKinds; ++k) {
    const auto kind = static_cast<Damage>(k);
    if (count(kind) == 0) continue;
    auto* line = source->add_damage();
    line->set_kind(damage_text(kind).code);
    line->set_count(damage.count(kind));
  }
}

void Recording::write(PacketField field, std::string_view body) {
  std::string packet;
  protozero::pbf_writer writer(packet);
  writer.add_bytes(static_cast<protozero::pbf_tag_type>(field), body.data(), body.size());
  writer.add_uint32(static_cast<protozero::pbf_tag_type>(PacketField::sequence), ++sequence_);
  const uint32_t sum = crc32c(packet.data(), packet.size());
  writer.add_fixed32(static_cast<protozero::pbf_tag_type>(PacketField::crc32c), sum);
  protozero::pbf_writer(bytes_).add_bytes(
      static_cast<protozero::pbf_tag_type>(trace_fields::TraceField::packet), packet);
}

void Recording::write_rows() {
  trace::TallyBatch batch;
  const bool told = std::any_of(rows_.begin(), rows_.end(), [](const auto& row) {
    return row.first.number_tells != NumberTells::kNothing;
  });
  const bool any_step =
      std::any_of(rows_.begin(), rows_.end(), [](const auto& row) { return row.first.in_step; });
  for (const auto& [key, sums] : rows_) {
    batch.add_thread(key.thread);
    batch.add_stream(key.stream);
    batch.add_signature(key.signature);
    batch.add_range_path(key.range_path);
    batch.add_launches(sums.launches);
    batch.add_timed(sums.timed);
    batch.add_gpu_time_ns(sums.time_ns);
    batch.add_graph_launches(sums.graph);
    batch.add_windowed(key.windowed ? 1 : 0);
    if (told) batch.add_number_tells(static_cast<uint32_t>(key.number_tells));
    if (any_step) batch.add_in_step(key.in_step ? 1 : 0);
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
}

void Recording::finish(DamageLog& damage) {
  group_messages_ = groups_.take(damage);
  if (header_.session_id() == 0) invent_session();
}

// Where a recording begins, its place among others, and whether it was seen before, are read from
// its header.
void Recording::invent_session() {
  uint32_t sum = 0;
  for (const auto& [field, body] : definitions_) sum = sum * 31 + crc32c(body.data(), body.size());
  for (const auto& [key, sums] : rows_) sum = sum * 31 + crc32c(&sums, sizeof sums);
  for (const auto& message : group_messages_) {
    const std::string bytes = message.SerializeAsString();
    sum = sum * 31 + crc32c(bytes.data(), bytes.size());
  }
  header_.set_session_id(uint64_t{sum} << 32 | 1);
  if (!header_body_.empty()) return;
  header_.set_format_major(kFormatMajor);
  header_.set_rank(-1);
  summary_.set_header_lost(true);
}

std::string Recording::bytes() {
  constexpr uint32_t kVersion = 1;
  header_.set_summary(true);
  write(PacketField::header, header_.SerializeAsString());
  summary_.set_version(kVersion);
  write(PacketField::summary, summary_.SerializeAsString());
  for (const auto& [field, body] : definitions_) write(field, body);
  write_rows();
  write_steps();
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

void read_patterns(const Packet& packet, PatternTable& patterns, DamageLog& damage) {
  trace::Interned message;
  if (static_cast<PacketField>(packet.body_field) != PacketField::interned) return;
  if (!parse_message(message, packet.body)) return;  // told when the summary is read
  for (const auto& pattern : message.patterns()) add_pattern(pattern, patterns, damage);
}

// Calls visit(trace, input, packet) for every packet that counts.
template <typename Visit>
void for_each_known_packet(std::span<Input* const> inputs, Router& router,
                           std::vector<DamageLog>& logs, Visit&& visit) {
  for (uint32_t i = 0; i < inputs.size(); ++i)
    for_each_packet(*inputs[i], i, router, Batches::kCheck, logs[i],
                    [&](uint32_t trace, Packet& packet) {
                      if (trace != kNoIndex) visit(trace, i, packet);
                    });
}

// What sequence numbers tell, which are not in a summary themselves. By the built-in rules: a
// user's come later, and may only say otherwise what is recomputed.
ForwardNumbers numbers_of(std::span<Input* const> inputs, const TraceTables& tables,
                          const PhaseRules& rules, PhaseMap& phases, const OperatorMap& operators,
                          Router& router) {
  if (!operators.any()) return {};
  SequencePass pass(tables, rules, phases, operators);
  std::vector<DamageLog> said_before(inputs.size());
  router.reset();
  for_each_known_packet(inputs, router, said_before, [&](uint32_t trace, uint32_t, Packet& packet) {
    if (trace < tables.traces.size() && !packet.damaged) pass.packet(trace, packet);
  });
  pass.take();
  phases.use_again(pass.take_again());
  return pass.take_numbers(true);
}

}  // namespace

Condensed condense(std::span<Input* const> inputs) {
  TraceTables tables;
  Revisions revisions;
  std::vector<DamageLog> logs(inputs.size());
  Router router(tables);
  DefinitionPass definitions(tables);
  DamageLog told_by_readers;  // of the summary
  for_each_known_packet(inputs, router, logs, [&](uint32_t trace, uint32_t input, Packet& packet) {
    if (!revisions.newest_so_far(trace, input, packet, logs[input])) return;
    read_patterns(packet, tables.traces[trace].patterns, logs[input]);
    if (!packet.is_batch()) definitions.packet(trace, packet, told_by_readers);
  });
  tables.join();
  const PhaseRules rules;
  PhaseMap phases(rules, tables);
  const OperatorMap operators(tables, phases);
  const ForwardNumbers numbers = numbers_of(inputs, tables, rules, phases, operators, router);
  const NumberSource source{tables, operators, numbers};
  std::vector<Recording> recordings(tables.traces.size());
  std::vector<DamageLog> said_before(inputs.size());
  router.reset();
  for_each_known_packet(inputs, router, said_before,
                        [&](uint32_t trace, uint32_t input, Packet& packet) {
                          if (trace < recordings.size() && revisions.counts(trace, input, packet))
                            recordings[trace].packet(packet, trace, source, phases, logs[input]);
                        });
  for (size_t t = 0; t < recordings.size(); ++t)
    recordings[t].finish(logs[tables.traces[t].inputs.back()]);
  std::vector<bool> told(inputs.size(), false);  // an input's damage goes to its first recording
  for (size_t t = 0; t < recordings.size(); ++t)
    for (const uint32_t input : tables.traces[t].inputs) {
      recordings[t].add_source(inputs[input]->name(), logs[input], !told[input]);
      told[input] = true;
    }
  std::stable_sort(recordings.begin(), recordings.end(),
                   [](const Recording& a, const Recording& b) { return a.order() < b.order(); });
  Condensed out;
  std::set<uint64_t> sessions;
  for (auto& recording : recordings) {
    std::string bytes = recording.bytes();
    if (!sessions.insert(recording.session()).second) continue;  // without headers, and the same
    ++out.recordings;
    out.bytes += bytes;
  }
  return out;
}

}  // namespace flopinj::reduce
