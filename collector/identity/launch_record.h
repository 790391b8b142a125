// One launch on its way from the launching thread to the writer.
#pragma once
#include <collector/identity/ids.h>

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
    kStepMark = 1U << 4,  // in the ring: no launch, see RingRecord
  };
  SignatureId signature;  // 0 for graph launches
  PathId path;  // for graph launches: where the graph was launched, used for nodes without a path
  StreamId stream;
  uint32_t correlation = 0;      // CUPTI's, joins the activity record
  uint64_t sequence_plus_1 = 0;  // autograd sequence number
  GraphId graph;                 // 0 unless kGraph
  uint32_t flags = 0;
  uint32_t step = 0;  // the writer's: training step that it is in; 0: none
};
static_assert(sizeof(LaunchRecord) == 40 && std::is_trivially_copyable_v<LaunchRecord>);

}  // namespace flopinj
