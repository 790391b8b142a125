// Executable graphs: the kernel nodes that one graph launch runs. Locks; nothing is ever
// removed, so that what the writer holds stays valid.
#pragma once
#include <collector/base/mutex.h>
#include <collector/identity/launch_record.h>

#include <cstddef>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

namespace flopinj {

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

inline constexpr size_t kMaxGraphs = 65'536;
inline constexpr size_t kMaxGraphNodes = 1U << 20;  // of all graphs together: 40 MiB

class GraphTable {
 public:
  // Nodes of conditional bodies come last. Identical lists share an id. 0 past a bound.
  GraphId add(std::vector<GraphNode>);
  std::span<const GraphNode> nodes(GraphId) const;  // empty for an unknown id

 private:
  mutable Mutex mutex_;
  std::deque<std::vector<GraphNode>> graphs_ FLOPINJ_GUARDED_BY(mutex_);
  // Index into graphs_.
  std::unordered_multimap<uint64_t, uint32_t> by_content_ FLOPINJ_GUARDED_BY(mutex_);
  size_t nodes_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
