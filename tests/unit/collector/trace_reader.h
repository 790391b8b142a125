// A second reader of the trace format, for tests: framing and check sum from proto/FORMAT.md, bit
// by bit, and the rest by generated protobuf code. Shares nothing with the writer or with
// flopreduce.
#pragma once
#include <flop_trace.pb.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj::test {

namespace pb = flopinj::trace;

// A row of Interned.Pattern.
struct ReadRow {
  uint32_t signature = 0, path = 0;
  uint64_t step = 0;
  bool call = false;
};
using ReadPatterns = std::map<uint32_t, ReadRow>;  // by row number

struct ReadTrace {
  std::vector<pb::TracePacket> packets;
  std::vector<size_t> packet_bytes;
  size_t damaged = 0;    // packets whose check sum or encoding is wrong
  bool torn = false;     // ends inside a packet
  bool in_order = true;  // sequence counts 1, 2, 3, ...
  // Has Revised packets. Those that count are in `packets` as what they hold, the others as empty
  // packets.
  bool revised = false;
  ReadPatterns patterns;
};
ReadTrace read_trace(std::string_view bytes);
std::string file_bytes(const std::string& path);

// One launch, as the comments of LaunchBatch say it is to be read.
struct ReadLaunch {
  uint32_t signature = 0, path = 0;
  uint64_t sequence_plus_1 = 0, start_ns = 0, end_ns = 0;
  uint32_t step = 0;
  bool timed = false, graph = false, windowed = false;
  bool call = false;                       // begins one
  uint64_t called_before_ns = UINT64_MAX;  // at least, and less than 128 more; not known
  uint32_t pause_path = 0;
  uint64_t pause_end_before_ns = 0, pause_ns = 0;  // likewise, before the call
};
std::vector<ReadLaunch> read_launches(const pb::LaunchBatch&, const ReadPatterns& = {});

// Everything that can be wrong inside a whole trace without comparing it to what was recorded: ids
// used before they are defined, columns of unlike length, a ledger that does not agree with what
// was written before it. Empty: nothing.
std::string first_fault(const ReadTrace&);

struct Sums {
  uint64_t launches = 0, timed = 0, gpu_time_ns = 0, graph = 0, windowed = 0;
  std::map<uint32_t, uint64_t> by_signature;
  std::map<uint32_t, uint64_t> by_step;  // 0: in none; tallies have 1 for all others
};
Sums sums(const ReadTrace&);  // over batches and tallies

}  // namespace flopinj::test
