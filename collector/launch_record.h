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
    // Its kernel starts work from the GPU, which is in no count.
    kLaunchesKernels = 1U << 2,
    kLaunchesGraphs = 1U << 3,
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
  uint64_t node = 0;   // CUPTI's graph node id, joins the activity record; 0 when unknown
  uint32_t flags = 0;  // kLaunchesKernels, kLaunchesGraphs
  // In a body of a conditional node: how often it runs is decided on the GPU, so a graph launch is
  // no launch of it; its activity records are.
  bool conditional = false;
};

}  // namespace flopinj
