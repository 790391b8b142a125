// One launch on its way from the launching thread to the writer.
#pragma once
#include <collector/ids.h>

#include <cstdint>
#include <type_traits>

namespace flopinj {

struct LaunchRecord {
  enum Flags : uint32_t {
    kWindowed = 1U << 0,  // a measurement window was open
    kGraph = 1U << 1,  // a graph launch: `graph` instead of `signature`; stands for one launch per
                       // kernel node
  };
  SignatureId signature;  // 0 for graph launches
  PathId path;  // for graph launches: where the graph was launched, used for nodes without a path
  StreamId stream;
  uint32_t correlation = 0;      // CUPTI's, joins the activity record
  uint64_t sequence_plus_1 = 0;  // autograd sequence number
  GraphId graph;                 // 0 unless kGraph
  uint32_t flags = 0;
};
static_assert(sizeof(LaunchRecord) == 32 && std::is_trivially_copyable_v<LaunchRecord>);

// One kernel node of an executable graph, as it was captured.
struct GraphNode {
  SignatureId signature;
  PathId path;
  uint64_t sequence_plus_1 = 0;
  uint64_t node = 0;  // CUPTI's graph node id, joins the activity record; 0 when unknown
};

}  // namespace flopinj
