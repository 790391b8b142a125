// Which revision of a message counts: the highest of its key (proto/FORMAT.md).
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "reader/damage.h"
#include "reader/packet_reader.h"

namespace flopinj::reduce {

// Turns a packet that holds a revision into a packet with its content; other packets are left as
// they are.
class Revisions {
 public:
  // Where the revision that counts is.
  struct Place {
    uint32_t trace = 0, key = 0;
    uint64_t revision = 0;
    uint32_t file = 0;
    uint64_t begin = 0, end = 0;
  };

  // False for a packet that an earlier one has replaced already. What it holds replaces what an
  // earlier packet of the key held.
  bool newest_so_far(uint32_t trace, uint32_t file, Packet& packet, DamageLog& damage);
  // Of a packet that is read once more: whether it counts.
  bool counts(uint32_t trace, uint32_t file, Packet& packet) const;
  // One per key, in the files' order.
  std::vector<Place> newest() const;
  // What a packet holds, where it is a revision of this key: the recorder may have written a newer
  // one there meanwhile.
  static bool open(const Place& place, Packet& packet);

 private:
  std::unordered_map<uint64_t, Place> newest_;  // by (trace, key)
};

}  // namespace flopinj::reduce
