// Which recordings are in the inputs of a merge, and where: all that a merge holds of all of them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "passes/packets/trace_order.h"
#include "reader/input.h"

namespace flopinj::reduce {

// Bytes of an input in which packets of one recording begin.
struct Stretch {
  uint32_t input = 0;
  uint64_t begin = 0, end = 0;
};

// A recording, or the part of one that one input has.
struct Found {
  Stretch at;
  uint64_t session = 0;  // 0: its header is lost or gives none
  TraceOrder order;
  // Of its header, for lists of recordings.
  std::string job_id, cluster;
  uint64_t begin_ns = 0;  // by the host's clock
  uint32_t requeues = 0, restarts = 0;
  uint64_t hash = 0;  // of its packets
  uint32_t first_sequence = 0, last_sequence = 0;
  uint64_t damage = 0;  // places found so far
  bool has_header = false;
  bool simulated = false;
  bool summary = false;
  // A summary's recording as it was written: it is in every summary as it is.
  bool whole = false;
};

// More than any summary may have, copies included: what a few bytes ask for stays bounded.
inline constexpr size_t kMostFound = 1U << 20;

// Adds the recordings of an input, in its order. Why it cannot be used, or recordings in it cannot;
// empty where all can be. Stops at kMostFound.
std::string find_recordings(uint32_t index, Input& input, std::vector<Found>& found);

}  // namespace flopinj::reduce
