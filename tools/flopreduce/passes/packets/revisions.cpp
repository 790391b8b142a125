#include "passes/packets/revisions.h"

#include <algorithm>
#include <optional>
#include <protozero/exception.hpp>
#include <protozero/pbf_message.hpp>
#include <tuple>

#include "flop_trace_fields.h"

namespace flopinj::reduce {
namespace {

using PacketField = trace_fields::TracePacketField;
using Field = trace_fields::RevisedField;

constexpr size_t kMaxKeys = 1U << 18;

struct Revision {
  uint32_t key = 0;
  uint64_t number = 0;
  uint32_t body_field = 0;
  protozero::data_view body;
};

bool is_revised(const Packet& packet) {
  return packet.body_field == static_cast<uint32_t>(PacketField::revised);
}

uint32_t packet_field_of(Field field) {
  switch (field) {
    case Field::tally_batch:
      return static_cast<uint32_t>(PacketField::tally_batch);
    case Field::ledger:
      return static_cast<uint32_t>(PacketField::ledger);
    case Field::self_overhead:
      return static_cast<uint32_t>(PacketField::self_overhead);
    case Field::step_sums:
      return static_cast<uint32_t>(PacketField::step_sums);
    case Field::energy:
      return static_cast<uint32_t>(PacketField::energy);
    case Field::range_numbers:
      return static_cast<uint32_t>(PacketField::range_numbers);
    case Field::copy_sums:
      return static_cast<uint32_t>(PacketField::copy_sums);
    default:
      return 0;
  }
}

std::optional<Revision> parse(protozero::data_view body) {
  Revision revision;
  try {
    protozero::pbf_message<Field> message(body);
    while (message.next()) {
      const bool number = message.wire_type() == protozero::pbf_wire_type::varint;
      if (message.tag() == Field::key && number) {
        revision.key = message.get_uint32();
      } else if (message.tag() == Field::revision && number) {
        revision.number = message.get_uint64();
      } else if (packet_field_of(message.tag()) != 0 &&
                 message.wire_type() == protozero::pbf_wire_type::length_delimited) {
        revision.body_field = packet_field_of(message.tag());
        revision.body = message.get_view();
      } else {
        message.skip();
      }
    }
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
  if (revision.number == 0) return std::nullopt;
  return revision;
}

uint64_t key_of(uint32_t trace, const Revision& revision) {
  return static_cast<uint64_t>(trace) << 32 | revision.key;
}

void replace(Packet& packet, const Revision& by) {
  packet.body_field = by.body_field;
  packet.body = by.body;
}

}  // namespace

bool Revisions::newest_so_far(uint32_t trace, uint32_t file, Packet& packet, DamageLog& damage) {
  if (!is_revised(packet)) return true;
  const auto revision = parse(packet.body);
  if (!revision) {
    damage.add(Damage::kMalformedPacket);
    return false;
  }
  const auto known = newest_.find(key_of(trace, *revision));
  if (known == newest_.end() && newest_.size() >= kMaxKeys) {
    damage.add(Damage::kTableFull);
    return false;
  }
  Place& newest = newest_[key_of(trace, *revision)];
  if (revision->number <= newest.revision) return false;
  newest = {trace, revision->key, revision->number, file, packet.offset, packet.end};
  replace(packet, *revision);
  return true;
}

bool Revisions::counts(uint32_t trace, uint32_t file, Packet& packet) const {
  if (!is_revised(packet)) return true;
  const auto revision = parse(packet.body);
  if (!revision) return false;
  const auto known = newest_.find(key_of(trace, *revision));
  if (known == newest_.end()) return false;
  const Place& newest = known->second;
  return newest.file == file && newest.begin == packet.offset && open(newest, packet);
}

std::vector<Revisions::Place> Revisions::newest() const {
  std::vector<Place> all;
  for (const auto& [key, place] : newest_) all.push_back(place);
  std::sort(all.begin(), all.end(), [](const Place& a, const Place& b) {
    return std::tie(a.file, a.begin) < std::tie(b.file, b.begin);
  });
  return all;
}

bool Revisions::open(const Place& place, Packet& packet) {
  if (!is_revised(packet)) return false;
  const auto revision = parse(packet.body);
  if (!revision || revision->key != place.key) return false;
  replace(packet, *revision);
  return true;
}

}  // namespace flopinj::reduce
