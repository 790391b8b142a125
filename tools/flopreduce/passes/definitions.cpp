#include "passes/definitions.h"

#include <google/protobuf/arena.h>

#include <protozero/exception.hpp>
#include <protozero/pbf_message.hpp>

#include "flop_trace_fields.h"
#include "passes/rows/copies.h"
#include "passes/sequence/sequence_groups.h"
#include "reader/message.h"

namespace flopinj::reduce {
namespace {

constexpr size_t kMaxDiagnostics = 1000;  // kept per trace; the rest is counted

// Recorders do since minor version 3; simgpu's kernels are no machine code.
bool looks_at_code(const trace::Header& header) {
  return header.format_minor() >= 3 && !header.simulated();
}

}  // namespace

void DefinitionPass::packet(uint32_t trace, const Packet& packet, DamageLog& damage) {
  using Field = trace_fields::TracePacketField;
  trace_index_ = trace;
  trace_ = &tables_.traces[trace];
  damage_ = &damage;
  bool ok = true;
  // Calls use(message) where the packet holds one.
  const auto read = [&](auto message, auto&& use) {
    ok = parse_message(message, packet.body);
    if (ok) use(message);
  };
  const auto add_steps = [&](auto& message) { trace_->steps.add(message, damage); };
  try {
    switch (static_cast<Field>(packet.body_field)) {
      case Field::interned: {
        google::protobuf::Arena arena(arena_block_.get(), kArenaBlock);
        auto& message = *google::protobuf::Arena::CreateMessage<trace::Interned>(&arena);
        ok = parse_message(message, packet.body);
        if (ok) interned(message);
        break;
      }
      case Field::counter_samples:
        counter_samples(packet.body);
        break;
      case Field::header:
        trace_->has_header = ok = parse_message(trace_->header, packet.body);
        break;
      case Field::end:
        trace_->has_end = ok = parse_message(trace_->end, packet.body);
        break;
      case Field::self_overhead:
        trace_->has_overhead = ok = parse_message(trace_->overhead, packet.body);
        break;
      case Field::energy:
        ok = parse_message(trace_->energy, packet.body);
        if (ok && single_steps_) trace_->energy_readings.add(trace_->energy);
        break;
      case Field::copies:  // of use in a later pass
        read(trace::Copies(), [&](const auto& message) {
          ok = message.gap_ns_size() == message.duration_ns_size();
          if (ok)
            damage.add(Damage::kBadTime, for_each_copy_in(message, [](uint64_t, uint64_t) {}));
        });
        break;
      case Field::copy_sums:
        read(trace::CopySums(), [&](auto& message) { copy_sums(message); });
        break;
      case Field::summary:
        trace_->has_summary = ok = parse_message(trace_->summary, packet.body);
        if (trace_->summary.header_lost()) trace_->has_header = false;
        break;
      case Field::device:
        read(trace::Device(), [&](const auto& message) { device(message); });
        break;
      case Field::metric_group:
        read(trace::MetricGroup(), [&](const auto& message) { metric_group(message); });
        break;
      case Field::ledger:
        read(trace::Ledger(), [&](auto& message) { ledger(message); });
        break;
      case Field::sequence_groups:  // of use in a later pass
        read(trace::SequenceGroups(), [&](const auto& message) {
          ok = for_each_group(message, [](uint64_t, const SequenceGroup&) {});
        });
        break;
      case Field::steps:
        read(trace::Steps(), add_steps);
        break;
      case Field::step_sums:
        read(trace::StepSums(), add_steps);
        break;
      case Field::single_steps:
        if (!single_steps_ && steps_in_summaries_ > kMostSingleSteps) break;
        read(trace::SingleSteps(), add_steps);
        steps_in_summaries_ += trace_->steps.in_summary().steps.size();
        break;
      case Field::range_numbers:
        read(trace::RangeNumbers(), [&](const auto& message) { range_numbers(message); });
        break;
      case Field::device_times:
        read(trace::DeviceTimes(), [&](auto& message) {
          Device& of = tables_.devices[tables_.device_index(trace, message.device())];
          of.times = std::move(message);
        });
        break;
      case Field::diagnostic:
        read(trace::Diagnostic(), [&](auto& message) { diagnostic(message); });
        break;
      default:
        break;  // launches and tallies are for pass two
    }
  } catch (const protozero::exception&) {
    ok = false;
  }
  if (!ok) damage.add(Damage::kMalformedPacket);
}

void DefinitionPass::end_steps() {
  for (TraceState& trace : tables_.traces) {
    if (steps_in_summaries_ <= kMostSingleSteps) trace.steps.take_all_in_summary();
    if (!single_steps_ && !trace.steps.all_in_summary()) trace.steps.forget_single();
  }
}

void DefinitionPass::interned(const trace::Interned& message) {
  for (const auto& m : message.strings()) define(trace_->strings, m.id(), intern_name(m.value()));
  for (const auto& m : message.functions()) function(m);
  for (const auto& m : message.signatures()) signature(m);
  for (const auto& m : message.range_paths()) range_path(m);
  for (const auto& m : message.streams()) {
    define(trace_->streams, m.id(), tables_.device_index(trace_index_, m.device()));
    // define() logged where it is refused
    if (!trace_->stream_numbers.set(m.id(), m.stream())) continue;
    if (m.green_context())
      trace_->green_streams.insert(m.id());
    else
      trace_->green_streams.erase(m.id());
  }
  DamageLog& of_patterns = of_patterns_ != nullptr ? *of_patterns_ : *damage_;
  for (const auto& m : message.patterns()) trace_->patterns.add(m, of_patterns);
  for (const auto& m : message.threads()) define(trace_->threads, m.id(), name_of(m.name()));
}

void DefinitionPass::define(IdMap& ids, uint32_t id, uint32_t index) {
  if (index == kNoIndex)
    damage_->add(Damage::kTableFull);
  else if (!ids.set(id, index))
    damage_->add(Damage::kBadId);
}

uint32_t DefinitionPass::intern_name(std::string_view name) {
  bool full = false;
  const uint32_t index = tables_.names.intern(name, full);
  if (full) damage_->add(Damage::kTableFull);
  return index;
}

uint32_t DefinitionPass::name_of(uint32_t string_id) {
  if (string_id == 0) return NamePool::kEmpty;
  const uint32_t index = trace_->strings.get(string_id);
  if (index != kNoIndex) return index;
  damage_->add(Damage::kUndefinedId);
  return intern_name("(lost name)");
}

void DefinitionPass::function(const trace::Interned::Function& m) {
  const uint32_t known = trace_->functions.get(m.id());
  const auto index =
      known != kNoIndex ? known : static_cast<uint32_t>(trace_->function_facts.size());
  if (!trace_->functions.set(m.id(), index)) return damage_->add(Damage::kBadId);
  if (index == trace_->function_facts.size()) trace_->function_facts.emplace_back();
  trace_->function_facts[index] = {name_of(m.name()), m.registers_per_thread(),
                                   m.static_shared_bytes(), m.code_hash(),
                                   KernelCode(m, looks_at_code(trace_->header))};
  if (m.never_measured()) tables_.never_measured.insert(trace_->function_facts[index].name);
}

void DefinitionPass::signature(const trace::Interned::Signature& m) {
  Signature s;
  s.grid = {m.grid_x(), m.grid_y(), m.grid_z()};
  s.block = {m.block_x(), m.block_y(), m.block_z()};
  s.cluster = {m.cluster_x(), m.cluster_y(), m.cluster_z()};
  s.dynamic_shared_bytes = m.dynamic_shared_bytes();
  s.fingerprint = m.fingerprint();
  s.stable_hash = m.stable_hash();
  if (trace::Interned::ParameterClass_IsValid(m.parameter_class()))
    s.parameter_class = static_cast<ParameterClass>(m.parameter_class());
  const uint32_t function = trace_->functions.get(m.function());
  if (function == kNoIndex) {
    // Without a name it cannot be joined with other processes, nor shown; its launches count as
    // unmeasured.
    damage_->add(Damage::kUndefinedId);
    return;
  }
  const Function& facts = trace_->function_facts[function];
  s.name = facts.name;
  s.code_hash = facts.code_hash;
  s.registers_per_thread = facts.registers_per_thread;
  s.static_shared_bytes = facts.static_shared_bytes;
  if (s.stable_hash == 0) s.only_in_trace = trace_index_;
  const uint32_t index = tables_.signatures.intern(s);
  define(trace_->signatures, m.id(), index);
  if (index == kNoIndex || facts.code.state() == KernelCode::State::kNotSaid) return;
  // Equal code: a process that read it knows more than one that did not.
  KernelCode& known = tables_.code[index];
  if (known.state() < facts.code.state()) known = facts.code;
}

void DefinitionPass::range_path(const trace::Interned::RangePath& m) {
  uint32_t parent = m.parent() == 0 ? PathTable::kRoot : trace_->paths.get(m.parent());
  if (parent == kNoIndex) {  // not defined before this one: lost, or its own ancestor
    damage_->add(m.parent() == m.id() ? Damage::kParentLoop : Damage::kUndefinedId);
    parent = PathTable::kLost;
  }
  const uint32_t label = m.kind() == trace::Interned::RANGE_OVERFLOW
                             ? intern_name("(more ranges than the recorder keeps)")
                             : name_of(m.name());
  uint32_t path = tables_.paths.intern(parent, label, name_of(m.domain()),
                                       m.kind() == trace::Interned::RANGE_PROCESS);
  if (path == kNoIndex) {
    damage_->add(tables_.paths[parent].depth >= PathTable::kMaxDepth ? Damage::kParentLoop
                                                                     : Damage::kTableFull);
    path = parent;
  }
  define(trace_->paths, m.id(), path);
}

// Sums so far: the last message counts.
void DefinitionPass::range_numbers(const trace::RangeNumbers& m) {
  constexpr int kMost = 65'536;
  const int rows = m.name_size();
  if (m.range_path_size() != rows || m.times_size() != rows || m.total_size() != rows)
    return damage_->add(Damage::kBadColumns);
  if (rows > kMost) return damage_->add(Damage::kTableFull);
  trace_->numbers.clear();
  for (int i = 0; i < rows; ++i) {
    uint32_t path = PathTable::kRoot;
    if (m.range_path(i) != 0) path = trace_->paths.get(m.range_path(i));
    if (path == kNoIndex) {
      damage_->add(Damage::kUndefinedId);
      path = PathTable::kLost;
    }
    trace_->numbers.push_back({path, name_of(m.name(i)), m.times(i), m.total(i)});
  }
}

void DefinitionPass::copy_sums(trace::CopySums& m) {
  constexpr int kMost = 4096;
  const int rows = m.device_size();
  if (m.kind_size() != rows || m.copies_size() != rows || m.bytes_size() != rows ||
      m.pageable_bytes_size() != rows || m.total_ns_size() != rows)
    return damage_->add(Damage::kBadColumns);
  if (rows > kMost) return damage_->add(Damage::kTableFull);
  trace_->copy_sums = std::move(m);
}

void DefinitionPass::device(const trace::Device& facts) {
  tables_.devices[tables_.device_index(trace_index_, facts.id())].facts = facts;
}

void DefinitionPass::ledger(trace::Ledger& ledger) {
  constexpr int kMaxRows = 4096;
  if (ledger.device_size() > kMaxRows || ledger.dropped_size() > kMaxRows ||
      ledger.duplicate_size() > kMaxRows) {
    damage_->add(Damage::kTableFull);
    return;
  }
  for (const auto& row : ledger.device()) {
    Device& device = tables_.devices[tables_.device_index(trace_index_, row.device())];
    device.ledger_launches = row.launches();
    device.ledger_recorded = row.recorded();
    device.ledger_dropped = row.dropped();
  }
  if (trace_->header.level() == trace::LEVEL_LAUNCHES) trace_->coverage_growth.add(ledger);
  trace_->ledger = std::move(ledger);
  trace_->has_ledger = true;
}

// Written again, it is the same one with more to say. Before minor version 14 the number of times
// was in the text of a second one.
void DefinitionPass::diagnostic(trace::Diagnostic& diagnostic) {
  const auto known =
      std::ranges::find(trace_->diagnostics, diagnostic.code(),
                        [](const auto& d) -> const std::string& { return d.code(); });
  if (diagnostic.times() > 1 && known != trace_->diagnostics.end())
    *known = std::move(diagnostic);
  else if (trace_->diagnostics.size() < kMaxDiagnostics)
    trace_->diagnostics.push_back(std::move(diagnostic));
  else
    ++trace_->diagnostics_left_out;
}

}  // namespace flopinj::reduce
