// Which revision of a message counts: the highest of its key (proto/FORMAT.md).
#pragma once
#include <cstdint>
#include <unordered_map>

#include "reader/damage.h"
#include "reader/packet_reader.h"

namespace flopinj::reduce {

// Shared by the two passes. Both turn a packet that holds a revision into the packet it stands for;
// other packets are left as they are.
class Revisions {
 public:
  // Pass one: false for a packet that an earlier one has replaced already. What it holds replaces
  // what an earlier packet of the key held.
  bool newest_so_far(uint32_t trace, Packet& packet, DamageLog& damage);
  // Pass two: true once per key, for its highest revision.
  bool counts(uint32_t trace, Packet& packet);

 private:
  std::unordered_map<uint64_t, uint64_t> newest_;  // (trace, key) -> revision; 0 once counted
};

}  // namespace flopinj::reduce
