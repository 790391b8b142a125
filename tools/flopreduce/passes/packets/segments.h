// Stretches of the inputs that can be read apart from each other: pass one finds them, pass two
// reads them in any order and on any number of threads.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "reader/input.h"
#include "reader/packet_reader.h"
#include "tables/id_map.h"

namespace flopinj::reduce {

// Packets of one trace, one after another in one file.
struct Segment {
  uint32_t file = 0;
  Input* input = nullptr;  // that file
  uint32_t trace = 0;
  uint64_t begin = 0, end = 0;  // in the file
  // Of the trace, before this segment: packets up to it were seen before.
  uint32_t last_sequence = 0;
  uint32_t packet_before = 0;  // sequence number of the packet before it in the file
  bool goes_on = false;        // where the segment before it, which is of the same trace, ends
};

// Whether a packet comes after all before it in its trace; then it is the last one. What is missing
// before it, and what was seen before, is damage.
inline bool follows(uint32_t& last_sequence, const Packet& packet, DamageLog& damage) {
  if (packet.sequence <= last_sequence) {
    damage.add(Damage::kRepeatedPackets);
    return false;
  }
  damage.add(Damage::kLostPackets, packet.sequence - last_sequence - 1);
  last_sequence = packet.sequence;
  return true;
}

// Calls visit(packet) for each packet of a segment that its trace did not have before, while that
// returns true. Framing damage is not logged: pass one did.
template <typename Visit>
void for_each_new_packet(const Segment& segment, Visit&& visit) {
  DamageLog logged_before;
  PacketReader reader(*segment.input, logged_before, Batches::kRead, segment.begin, segment.end,
                      segment.packet_before);
  uint32_t last_sequence = segment.last_sequence;
  Packet packet;
  while (reader.next(packet)) {
    if (packet.sequence <= last_sequence) continue;
    last_sequence = packet.sequence;
    if (!visit(static_cast<const Packet&>(packet))) return;
  }
}

// Segments do not depend on the number of threads, so that nothing that does can be in a report.
class Segments {
 public:
  static constexpr uint64_t kBytes = 4U << 20;  // of a segment, about
  static constexpr size_t kMost = 1U << 22;     // pieces; a rank has one or more

  // Each packet in turn. `trace` is kNoIndex for packets of no trace; `last_sequence` that of the
  // trace before this packet. False where there are too many segments.
  bool note(uint32_t file, Input& input, uint32_t trace, uint32_t last_sequence,
            const Packet& packet) {
    const uint32_t before = file == file_ ? packet_before_ : 0;
    file_ = file;
    packet_before_ = packet.sequence;
    Segment* last = all_.empty() ? nullptr : &all_.back();
    const bool same = last != nullptr && open_ && last->file == file && last->trace == trace;
    if (same && packet.offset - last->begin < kPiece) {
      last->end = packet.end;
      return true;
    }
    open_ = trace != kNoIndex && all_.size() < kMost;
    if (open_)
      all_.push_back({file, &input, trace, packet.offset, packet.end, last_sequence, before, same});
    return open_ || trace == kNoIndex;
  }
  // After the last packet: those of one trace are together, in their order. Of a trace that has
  // several, they are about equal, and their number divides by four: so no thread waits long for
  // the others.
  void end() {
    std::ranges::stable_sort(all_, {}, &Segment::trace);
    std::vector<Segment> joined;
    for (size_t at = 0, end = 0; at < all_.size(); at = end) {
      do ++end;
      while (end < all_.size() && all_[end].goes_on);
      const size_t pieces = end - at;
      size_t wanted = (pieces + kBytes / kPiece - 1) / (kBytes / kPiece);
      if (wanted > 1) wanted = std::min(pieces, (wanted + 3) / 4 * 4);
      for (size_t i = 0; i < wanted; ++i) {
        joined.push_back(all_[at + i * pieces / wanted]);
        joined.back().end = all_[at + (i + 1) * pieces / wanted - 1].end;
      }
    }
    all_ = std::move(joined);
  }
  const std::vector<Segment>& all() const { return all_; }

 private:
  static constexpr uint64_t kPiece = kBytes / 16;  // segments are cut where pieces are
  std::vector<Segment> all_;
  bool open_ = false;
  uint32_t file_ = kNoIndex;
  uint32_t packet_before_ = 0;
};

}  // namespace flopinj::reduce
