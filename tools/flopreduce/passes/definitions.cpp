#include "passes/definitions.h"

#include <protozero/exception.hpp>
#include <protozero/pbf_message.hpp>

#include "flop_trace_fields.h"
#include "reader/message.h"

namespace flopinj::reduce {
namespace {

using trace_fields::InternedFunctionField;
using trace_fields::InternedRangePathField;
using trace_fields::InternedSignatureField;
using trace_fields::InternedStreamField;
using trace_fields::InternedStringField;
using trace_fields::InternedThreadField;

constexpr size_t kMaxDiagnostics = 1000;  // kept per trace; the rest is counted

}  // namespace

void DefinitionPass::packet(uint32_t trace, const Packet& packet, DamageLog& damage) {
  using Field = trace_fields::TracePacketField;
  trace_index_ = trace;
  trace_ = &model_.traces[trace];
  damage_ = &damage;
  bool ok = true;
  try {
    switch (static_cast<Field>(packet.body_field)) {
      case Field::interned:
        interned(packet.body);
        break;
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
      case Field::device: {
        trace::Device facts;
        ok = parse_message(facts, packet.body);
        if (ok) device(facts);
        break;
      }
      case Field::metric_group: {
        trace::MetricGroup group;
        ok = parse_message(group, packet.body);
        if (ok) metric_group(group);
        break;
      }
      case Field::ledger: {
        trace::Ledger message;
        ok = parse_message(message, packet.body);
        if (ok) ledger(message);
        break;
      }
      case Field::diagnostic: {
        trace::Diagnostic message;
        ok = parse_message(message, packet.body);
        if (ok) diagnostic(message);
        break;
      }
      default:
        break;  // launches and tallies are for pass two
    }
  } catch (const protozero::exception&) {
    ok = false;
  }
  if (!ok) damage.add(Damage::kMalformedPacket);
}

void DefinitionPass::interned(protozero::data_view body) {
  using Field = trace_fields::InternedField;
  protozero::pbf_message<Field> message(body);
  while (message.next()) {
    if (message.wire_type() != protozero::pbf_wire_type::length_delimited) {
      message.skip();
      continue;
    }
    switch (message.tag()) {
      case Field::strings:
        string(message.get_view());
        break;
      case Field::functions:
        function(message.get_view());
        break;
      case Field::signatures:
        signature(message.get_view());
        break;
      case Field::range_paths:
        range_path(message.get_view());
        break;
      case Field::streams:
        stream(message.get_view());
        break;
      case Field::threads:
        thread(message.get_view());
        break;
      default:
        message.skip();
        break;
    }
  }
}

void DefinitionPass::define(IdMap& ids, uint32_t id, uint32_t index) {
  if (index == kNoIndex)
    damage_->add(Damage::kTableFull);
  else if (!ids.set(id, index))
    damage_->add(Damage::kBadId);
}

uint32_t DefinitionPass::intern_name(std::string_view name) {
  bool full = false;
  const uint32_t index = model_.names.intern(name, full);
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

void DefinitionPass::string(protozero::data_view body) {
  uint32_t id = 0;
  std::string_view value;
  protozero::pbf_message<InternedStringField> message(body);
  while (message.next()) {
    if (message.tag() == InternedStringField::id)
      id = message.get_uint32();
    else if (message.tag() == InternedStringField::value) {
      const auto view = message.get_view();
      value = {view.data(), view.size()};
    } else
      message.skip();
  }
  define(trace_->strings, id, intern_name(value));
}

void DefinitionPass::function(protozero::data_view body) {
  uint32_t id = 0;
  uint32_t name = 0;
  protozero::pbf_message<InternedFunctionField> message(body);
  while (message.next()) {
    if (message.tag() == InternedFunctionField::id)
      id = message.get_uint32();
    else if (message.tag() == InternedFunctionField::name)
      name = message.get_uint32();
    else
      message.skip();
  }
  define(trace_->functions, id, name_of(name));
}

void DefinitionPass::signature(protozero::data_view body) {
  using Field = InternedSignatureField;
  uint32_t id = 0;
  uint32_t function = 0;
  Signature s;
  protozero::pbf_message<Field> message(body);
  while (message.next()) {
    switch (message.tag()) {
      case Field::id:
        id = message.get_uint32();
        break;
      case Field::function:
        function = message.get_uint32();
        break;
      case Field::grid_x:
        s.grid[0] = message.get_uint32();
        break;
      case Field::grid_y:
        s.grid[1] = message.get_uint32();
        break;
      case Field::grid_z:
        s.grid[2] = message.get_uint32();
        break;
      case Field::block_x:
        s.block[0] = message.get_uint32();
        break;
      case Field::block_y:
        s.block[1] = message.get_uint32();
        break;
      case Field::block_z:
        s.block[2] = message.get_uint32();
        break;
      case Field::cluster_x:
        s.cluster[0] = message.get_uint32();
        break;
      case Field::cluster_y:
        s.cluster[1] = message.get_uint32();
        break;
      case Field::cluster_z:
        s.cluster[2] = message.get_uint32();
        break;
      case Field::dynamic_shared_bytes:
        s.dynamic_shared_bytes = message.get_uint32();
        break;
      case Field::fingerprint:
        s.fingerprint = message.get_fixed64();
        break;
      case Field::stable_hash:
        s.stable_hash = message.get_fixed64();
        break;
      case Field::parameter_class: {
        const int32_t value = message.get_enum();
        s.parameter_class = value >= 0 && value <= 3 ? static_cast<ParameterClass>(value)
                                                     : ParameterClass::kUnspecified;
        break;
      }
      default:
        message.skip();
        break;
    }
  }
  const uint32_t name = trace_->functions.get(function);
  if (name == kNoIndex) {
    // Without a name it cannot be joined with other processes, nor shown; its launches count as
    // unmeasured.
    damage_->add(Damage::kUndefinedId);
    return;
  }
  s.name = name;
  if (s.stable_hash == 0) s.only_in_trace = trace_index_;
  define(trace_->signatures, id, model_.signatures.intern(s));
}

void DefinitionPass::range_path(protozero::data_view body) {
  using Field = InternedRangePathField;
  uint32_t id = 0;
  uint32_t parent_id = 0;
  uint32_t name = 0;
  uint32_t domain = 0;
  int32_t kind = 0;
  protozero::pbf_message<Field> message(body);
  while (message.next()) {
    switch (message.tag()) {
      case Field::id:
        id = message.get_uint32();
        break;
      case Field::parent:
        parent_id = message.get_uint32();
        break;
      case Field::name:
        name = message.get_uint32();
        break;
      case Field::domain:
        domain = message.get_uint32();
        break;
      case Field::kind:
        kind = message.get_enum();
        break;
      default:
        message.skip();
        break;
    }
  }
  uint32_t parent = parent_id == 0 ? PathTable::kRoot : trace_->paths.get(parent_id);
  if (parent == kNoIndex) {  // not defined before this one: lost, or its own ancestor
    damage_->add(parent_id == id ? Damage::kParentLoop : Damage::kUndefinedId);
    parent = PathTable::kLost;
  }
  constexpr int32_t kOverflowKind = 2;
  const uint32_t label =
      kind == kOverflowKind ? intern_name("(more ranges than the recorder keeps)") : name_of(name);
  uint32_t path = model_.paths.intern(parent, label, name_of(domain), kind == 1);
  if (path == kNoIndex) {
    damage_->add(model_.paths[parent].depth >= PathTable::kMaxDepth ? Damage::kParentLoop
                                                                    : Damage::kTableFull);
    path = parent;
  }
  define(trace_->paths, id, path);
}

void DefinitionPass::stream(protozero::data_view body) {
  uint32_t id = 0;
  uint32_t device = 0;
  protozero::pbf_message<InternedStreamField> message(body);
  while (message.next()) {
    if (message.tag() == InternedStreamField::id)
      id = message.get_uint32();
    else if (message.tag() == InternedStreamField::device)
      device = message.get_uint32();
    else
      message.skip();
  }
  define(trace_->streams, id, model_.device_index(trace_index_, device));
}

void DefinitionPass::thread(protozero::data_view body) {
  uint32_t id = 0;
  uint32_t name = 0;
  protozero::pbf_message<InternedThreadField> message(body);
  while (message.next()) {
    if (message.tag() == InternedThreadField::id)
      id = message.get_uint32();
    else if (message.tag() == InternedThreadField::name)
      name = message.get_uint32();
    else
      message.skip();
  }
  define(trace_->threads, id, name_of(name));
}

void DefinitionPass::device(const trace::Device& facts) {
  model_.devices[model_.device_index(trace_index_, facts.id())].facts = facts;
}

void DefinitionPass::ledger(trace::Ledger& ledger) {
  constexpr int kMaxRows = 4096;
  if (ledger.device_size() > kMaxRows || ledger.dropped_size() > kMaxRows ||
      ledger.duplicate_size() > kMaxRows) {
    damage_->add(Damage::kTableFull);
    return;
  }
  for (const auto& row : ledger.device()) {
    Device& device = model_.devices[model_.device_index(trace_index_, row.device())];
    device.ledger_launches = row.launches();
    device.ledger_recorded = row.recorded();
    device.ledger_dropped = row.dropped();
  }
  trace_->ledger = std::move(ledger);
  trace_->has_ledger = true;
}

void DefinitionPass::diagnostic(trace::Diagnostic& diagnostic) {
  if (trace_->diagnostics.size() < kMaxDiagnostics)
    trace_->diagnostics.push_back(std::move(diagnostic));
  else
    ++trace_->diagnostics_left_out;
}

}  // namespace flopinj::reduce
