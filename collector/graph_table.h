// Executable graphs: the kernel nodes that one graph launch stands for. Locks; nothing is ever
// removed, so that what the writer holds stays valid.
#pragma once
#include <collector/launch_record.h>

#include <cstddef>
#include <deque>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace flopinj {

inline constexpr size_t kMaxGraphs = 65'536;
inline constexpr size_t kMaxGraphNodes = 1U << 20;  // of all graphs together: 40 MiB

class GraphTable {
 public:
  // Nodes of conditional bodies come last. Identical lists share an id. 0 past a bound.
  GraphId add(std::vector<GraphNode>);
  std::span<const GraphNode> nodes(GraphId) const;  // empty for an unknown id

 private:
  mutable std::mutex mutex_;
  std::deque<std::vector<GraphNode>> graphs_;
  std::unordered_multimap<uint64_t, uint32_t> by_content_;  // index into graphs_
  size_t nodes_ = 0;
};

}  // namespace flopinj
