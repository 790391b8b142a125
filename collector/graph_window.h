// What a measurement window around one graph launch says of the graph's kernels.
//
// Nobody has established what CUPTI's automatic ranges are of a graph launch: one for each kernel
// node, or one for the launch, and in which order. So nothing is taken that would be wrong under
// any of the answers:
//   as many ranges as kernels   and the kernels follow one another: each range is its kernel's.
//                               In no fixed order: only where all are of one signature.
//   one range, several kernels  only where all are of one signature: each value divided by their
//                               number, where what tells work divides without remainder. Time
//                               and cycles are no sum over kernels: they are left out.
//   anything else               is of no use, and the reason is told.
#pragma once
#include <collector/ids.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace flopinj {

// A kernel node of an executable graph.
struct GraphKernel {
  SignatureId signature;
  PathId path;  // 0: where the graph was launched
};

struct GraphMetric {
  bool tells_work = false;  // depends on the kernel's work alone
  bool adds_up = false;     // of several kernels: the sum of theirs
};

// What a window around a launch of the graph brought.
struct GraphRanges {
  std::span<const GraphKernel> kernels;  // those that ran; in the order they did, where `ordered`
  bool ordered = false;
  // Other contexts' kernels are in no range: then one range cannot be said to be of all kernels.
  bool one_context = false;
  size_t ranges = 0;
  std::span<const double> values;  // ranges x metrics, range by range
  std::span<const GraphMetric> metrics;
};

enum class GraphVerdict : uint8_t {
  kPerKernel,    // a sample for each kernel
  kTogether,     // one sample, of all kernels
  kNoRange,      // these are of no use
  kUnordered,    // as many ranges as kernels, and nothing says which is whose
  kUnlike,       // one range, and kernels that differ
  kElsewhere,    // one range, and the program has other contexts
  kRemainder,    // one range, and a count that does not divide: the kernels' work differs
  kOtherNumber,  // of ranges
};

struct GraphSamples {
  GraphVerdict verdict = GraphVerdict::kNoRange;
  uint32_t kernels_each = 1;         // that one sample stands for
  std::vector<GraphKernel> kernels;  // one for each sample; without a path where it is not known
  std::vector<double> values;        // samples x metrics; not a number: none for this metric

  bool usable() const {
    return verdict == GraphVerdict::kPerKernel || verdict == GraphVerdict::kTogether;
  }
};

GraphSamples samples_of_graph(const GraphRanges&);
// For people: "as many ranges as kernels, and nothing says which is whose".
std::string_view words_for(GraphVerdict);
// Of a metric that CUPTI sums over a range: it adds up over kernels. Not so time, and maxima.
bool adds_up_over_kernels(std::string_view metric);

// Nodes 0 ... kernel.size() - 1 of a graph, which of them are kernels, and from which to which there
// are edges. Where every kernel follows the one before it, directly or through other nodes: each
// node's place in that order (of nodes that are no kernel, nothing to go by). Empty: several orders
// are possible, or there is no kernel, or the edges make no graph.
std::optional<std::vector<uint32_t>> places_in_chain(
    const std::vector<bool>& kernel, std::span<const std::pair<uint32_t, uint32_t>> edges);

}  // namespace flopinj
