#include "passes/summary/found.h"

#include <xxhash.h>

#include <algorithm>
#include <optional>

#include "flop_trace_fields.h"
#include "passes/router.h"
#include "reader/message.h"
#include "reader/packet_reader.h"

namespace flopinj::reduce {
namespace {

using PacketField = trace_fields::TracePacketField;

bool is(const Packet& packet, PacketField field) {
  return packet.body_field == static_cast<uint32_t>(field);
}

uint64_t places(const DamageLog& damage) {
  uint64_t all = 0;
  for (size_t k = 0; k < kDamageKinds; ++k) all += damage.count(static_cast<Damage>(k));
  return all;
}

// Follows the packets of one input.
class Finder {
 public:
  Finder(uint32_t index, std::vector<Found>& found) : index_(index), found_(found) {}

  void packet(const Packet& packet, uint64_t damage);
  void finish(uint64_t damage);
  std::optional<uint32_t> other_version() const { return other_version_; }
  bool any() const { return any_; }

 private:
  void header(const Packet& packet);
  void begin(const Packet& packet);
  void belongs(const Packet& packet);
  Found& current() { return found_.back(); }

  const uint32_t index_;
  std::vector<Found>& found_;
  bool any_ = false;      // `current` is of this input
  bool open_ = false;     // packets belong to it
  bool refused_ = false;  // packets up to the next header are not known, and nobody's
  bool others_ = false;   // there are such
  bool ended_ = false;
  uint32_t packets_ = 0;  // of the current one
  uint64_t damage_before_ = 0;
  std::optional<uint32_t> other_version_;
};

void Finder::begin(const Packet& packet) {
  Found next;
  const bool first = !any_ && !others_;  // then what was damaged before it is its own
  next.at = {index_, first ? 0 : packet.offset, packet.end};
  next.first_sequence = packet.sequence;
  next.order = trace_order(nullptr);
  next.damage = first ? damage_before_ : 0;
  next.whole = next.damage == 0;
  found_.push_back(std::move(next));
  any_ = open_ = true;
  ended_ = false;
  packets_ = 0;
}

void Finder::header(const Packet& packet) {
  trace::Header header;
  const bool readable = parse_message(header, packet.body);
  refused_ = !readable || header.format_major() != kFormatMajor;
  if (refused_) {
    others_ = true;
    if (readable) other_version_ = header.format_major();
    if (!readable && open_) current().whole = false, ++current().damage;
    open_ = false;
    return;
  }
  // A summary that follows itself is one again, not the rest of it.
  const bool same = open_ && current().session == header.session_id() &&
                    (!current().summary || packet.sequence > current().last_sequence);
  if (!same) begin(packet);
  Found& now = current();
  if (same && packet.sequence <= now.last_sequence) return;
  now.whole = now.whole && !same && header.summary() && header.session_id() != 0;
  now.session = header.session_id();
  now.order = trace_order(&header);
  now.job_id = header.job_id();
  for (const auto& label : header.label())
    if (label.name() == "cluster") now.cluster = label.value();
  now.begin_ns = header.clock_realtime_ns();
  now.requeues = header.requeues();
  now.restarts = header.restarts();
  now.has_header = true;
  now.simulated = header.simulated();
  now.summary = header.summary();
}

void Finder::belongs(const Packet& packet) {
  Found& now = current();
  now.at.end = packet.end;
  if (packet.sequence <= now.last_sequence) {
    now.whole = false;
    return;
  }
  ++packets_;
  now.whole = now.whole && packet.sequence == packets_ &&
              (packets_ != 1 || is(packet, PacketField::header)) &&
              (packets_ != 2 || is(packet, PacketField::summary));
  now.last_sequence = packet.sequence;
  now.hash = XXH3_64bits_withSeed(packet.body.data(), packet.body.size(),
                                  now.hash ^ uint64_t{packet.body_field} << 32 ^ packet.sequence);
  ended_ = is(packet, PacketField::end);
  if (!is(packet, PacketField::summary) || !now.summary) return;
  trace::Summary summary;
  if (!parse_message(summary, packet.body) || summary.version() == 0) now.whole = false;
  if (!summary.header_lost()) return;
  now.has_header = false;
  now.order = trace_order(nullptr);
  std::get<uint64_t>(now.order) = now.session;
}

void Finder::packet(const Packet& packet, uint64_t damage) {
  // What is damaged belongs to the recording before it.
  if (damage != damage_before_ && any_ && !refused_) {
    current().damage += damage - damage_before_;
    current().whole = false;
    current().at.end = std::max(current().at.end, packet.offset);
  }
  damage_before_ = damage;
  if (is(packet, PacketField::header)) {
    header(packet);
  } else if (!refused_) {
    // In a summary numbers start again with each recording, and an end is the end: this one's
    // header is lost.
    const bool next = open_ && packet.sequence <= current().last_sequence && current().summary;
    const bool after_end = open_ && packet.sequence > current().last_sequence && ended_;
    if (!open_ || next || after_end) begin(packet), current().whole = false;
  }
  if (open_) belongs(packet);
}

void Finder::finish(uint64_t damage) {
  if (damage == damage_before_ || !any_ || refused_) return;
  current().damage += damage - damage_before_;
  current().whole = false;
  current().at.end = UINT64_MAX;
}

}  // namespace

std::string find_recordings(uint32_t index, Input& input, std::vector<Found>& found) {
  DamageLog damage;
  Finder finder(index, found);
  PacketReader reader(input, damage, Batches::kCheck);
  Packet packet;
  bool any_packet = false;
  while (found.size() < kMostFound && reader.next(packet)) {
    any_packet = true;
    finder.packet(packet, places(damage));
  }
  finder.finish(places(damage) + (input.read_failed() ? 1 : 0));
  if (!any_packet) return input.read_failed() ? "cannot be read" : input.not_a_trace();
  if (const auto version = finder.other_version()) return other_version(*version);
  return finder.any() ? "" : input.not_a_trace();
}

}  // namespace flopinj::reduce
