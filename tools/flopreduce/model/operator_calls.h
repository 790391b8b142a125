// What sequence numbers tell: how often an operator was called, and which forward operator a backward
// one belongs to.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace flopinj::reduce {

struct OperatorCalls {
  // By range path: changes of the sequence number among its launches on one thread; 0 where a launch
  // has none, came from a graph (which repeats its numbers), or was not kept apart.
  std::vector<uint64_t> calls;
  // Launches of a backward path, by the forward path with the same sequence number.
  static uint64_t key(uint32_t backward, uint32_t forward) {
    return static_cast<uint64_t>(backward) << 32 | forward;
  }
  std::unordered_map<uint64_t, uint64_t> joined;
  // Backward launches with a sequence number: each is in one of these.
  uint64_t joined_launches = 0;
  uint64_t without_forward = 0;  // nobody's forward had that number
  uint64_t other_operator = 0;   // its forward is of another operator: numbers count per thread
  uint64_t ambiguous = 0;        // several threads of the device had that number
  uint64_t out_of_window = 0;    // too far behind, or a table was full
};

}  // namespace flopinj::reduce
