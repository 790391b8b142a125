#include <collector/base/assert.h>
#include <collector/base/hash.h>
#include <collector/identity/graph_table.h>

#include <algorithm>
#include <utility>

namespace flopinj {
namespace {

uint64_t hash_of(const std::vector<GraphNode>& nodes) {
  uint64_t hash = nodes.size();
  for (const GraphNode& n : nodes) {
    hash = hash_mix(hash, hash_pair(n.signature.value, n.path.value));
    hash = hash_mix(hash, n.sequence_plus_1);
    hash = hash_mix(hash, n.node);
    hash = hash_mix(hash, n.flags << 1U | uint32_t{n.conditional});
  }
  return hash;
}

bool same(const GraphNode& a, const GraphNode& b) {
  return a.signature == b.signature && a.path == b.path && a.sequence_plus_1 == b.sequence_plus_1 &&
         a.node == b.node && a.flags == b.flags && a.conditional == b.conditional;
}

}  // namespace

GraphId GraphTable::add(std::vector<GraphNode> nodes) {
  FLOPINJ_ASSERT(std::ranges::is_sorted(nodes, {}, &GraphNode::conditional));
  const uint64_t hash = hash_of(nodes);
  const MutexLock lock(mutex_);
  const auto [first, last] = by_content_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const auto& known = graphs_[at->second];
    if (std::equal(known.begin(), known.end(), nodes.begin(), nodes.end(), same))
      return GraphId{at->second + 1};
  }
  if (graphs_.size() >= kMaxGraphs || nodes_ + nodes.size() > kMaxGraphNodes) return {};
  nodes_ += nodes.size();
  graphs_.push_back(std::move(nodes));
  const auto index = static_cast<uint32_t>(graphs_.size() - 1);
  by_content_.emplace(hash, index);
  return GraphId{index + 1};
}

std::span<const GraphNode> GraphTable::nodes(GraphId id) const {
  const MutexLock lock(mutex_);
  if (id.value == 0 || id.value > graphs_.size()) return {};
  return graphs_[id.value - 1];
}

}  // namespace flopinj
