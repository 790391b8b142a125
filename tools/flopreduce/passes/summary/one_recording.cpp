#include "passes/summary/one_recording.h"

#include <algorithm>
#include <optional>

#include "flop_trace_fields.h"
#include "passes/definitions.h"
#include "passes/packets/revisions.h"
#include "passes/packets/segments.h"
#include "passes/sequence/sequence_pass.h"

namespace flopinj::reduce {
namespace {

using PacketField = trace_fields::TracePacketField;

// What it takes to say which launches belong to which operator, step and device.
bool names_something(const Packet& packet) {
  const auto field = static_cast<PacketField>(packet.body_field);
  return field == PacketField::interned || field == PacketField::steps ||
         field == PacketField::step_sums || field == PacketField::device ||
         field == PacketField::metric_group || field == PacketField::ledger;
}

// Calls visit(input, packet, sequence number of the packet before it) for every packet that is read
// neither twice nor out of order.
template <typename Visit>
void for_each_new_packet(std::span<const Found> parts, std::span<Input* const> inputs,
                         Batches batches, DamageLog& damage, Visit&& visit) {
  uint32_t last = 0;
  for (const Found& part : parts) {
    Input& input = *inputs[part.at.input];
    PacketReader reader(input, damage, batches, part.at.begin, part.at.end);
    Packet packet;
    while (reader.next(packet)) {
      if (packet.sequence <= last) {
        damage.add(Damage::kRepeatedPackets);
        continue;
      }
      damage.add(Damage::kLostPackets, packet.sequence - last - 1);
      visit(part.at.input, packet, last);
      last = packet.sequence;
    }
    if (input.read_failed()) damage.add(Damage::kTornTail);
  }
}

}  // namespace

Recording condense_recording(std::span<const Found> parts, std::span<Input* const> inputs,
                             const PhaseRules& rules, KnownNames& known, DamageLog& damage) {
  std::optional<Input::Reading> open;  // one file is opened once, many are one after another
  if (parts.size() == 1) open.emplace(*inputs[parts.front().at.input]);
  TraceTables tables;
  tables.traces.emplace_back().session = parts.front().session;
  Revisions revisions;
  DefinitionPass definitions(tables, &damage);  // a summary has no patterns to find damaged again
  DamageLog told_by_readers;                    // of the summary
  // Where all check sums were right, batches need not be read to be passed over.
  const bool sound = std::ranges::all_of(parts, [](const Found& f) { return f.damage == 0; });
  const auto batches = sound ? Batches::kSkip : Batches::kCheck;
  for_each_new_packet(parts, inputs, batches, damage,
                      [&](uint32_t input, Packet& packet, uint32_t) {
                        if (!revisions.newest_so_far(0, input, packet, damage)) return;
                        if (names_something(packet)) definitions.packet(0, packet, told_by_readers);
                      });
  tables.join();
  known.operators.make_room();
  PhaseMap phases(rules, tables, &known.matches);
  const OperatorMap operators(tables, phases, &known.operators);
  DamageLog said_before;
  ForwardNumbers numbers;
  // What sequence numbers tell, which are not in a summary themselves. By the built-in rules: a
  // user's come later, and may only say otherwise what is recomputed.
  if (operators.any()) {
    SequencePass pass(tables, rules, phases, operators);
    for_each_new_packet(parts, inputs, Batches::kCheck, said_before,
                        [&](uint32_t, Packet& packet, uint32_t) { pass.packet(0, packet); });
    pass.take();
    phases.use_again(pass.take_again());
    numbers = pass.take_numbers(true);
  }
  const NumberSource source{tables, operators, numbers};
  SharedTables shared(tables, rules, phases, 0, RowsBy::kSummary);
  shared.use_numbers(source);
  RecordedLaunches launches(shared, phases);
  Recording recording;
  Segments segments;
  for_each_new_packet(parts, inputs, Batches::kCheck, said_before,
                      [&](uint32_t input, Packet& packet, uint32_t before) {
                        segments.note(input, 0, before, packet);
                        if (!revisions.counts(0, input, packet)) return;
                        if (packet.is_batch())
                          launches.batch(packet, segments.all().size(), damage);
                        else
                          recording.packet(packet, launches, damage);
                      });
  recording.finish(launches, damage);
  return recording;
}

}  // namespace flopinj::reduce
