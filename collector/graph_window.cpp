#include <collector/graph_window.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace flopinj {
namespace {

bool of_one_signature(std::span<const GraphKernel> kernels) {
  return std::ranges::all_of(
      kernels, [&](const GraphKernel& k) { return k.signature == kernels.front().signature; });
}

// Stands for all of them, whichever of them it is.
GraphKernel any_of(std::span<const GraphKernel> kernels) {
  GraphKernel kernel = kernels.front();
  if (!std::ranges::all_of(kernels, [&](const GraphKernel& k) { return k.path == kernel.path; }))
    kernel.path = {};
  return kernel;
}

GraphSamples of_no_use(GraphVerdict why) {
  GraphSamples samples;
  samples.verdict = why;
  return samples;
}

GraphSamples per_kernel(const GraphRanges& read) {
  if (!read.ordered && !of_one_signature(read.kernels)) return of_no_use(GraphVerdict::kUnordered);
  GraphSamples samples;
  samples.verdict = GraphVerdict::kPerKernel;
  samples.kernels.assign(read.kernels.begin(), read.kernels.end());
  if (!read.ordered) std::ranges::fill(samples.kernels, any_of(read.kernels));
  samples.values.assign(read.values.begin(), read.values.end());
  return samples;
}

GraphSamples together(const GraphRanges& read) {
  if (!of_one_signature(read.kernels)) return of_no_use(GraphVerdict::kUnlike);
  if (!read.one_context) return of_no_use(GraphVerdict::kElsewhere);
  const auto kernels = static_cast<double>(read.kernels.size());
  GraphSamples samples;
  samples.verdict = GraphVerdict::kTogether;
  samples.kernels_each = static_cast<uint32_t>(read.kernels.size());
  samples.kernels.push_back(any_of(read.kernels));
  for (size_t m = 0; m < read.values.size(); ++m) {
    const double value = read.values[m];
    if (read.metrics[m].tells_work && std::fmod(value, kernels) != 0)  // true for what is no number
      return of_no_use(GraphVerdict::kRemainder);
    samples.values.push_back(read.metrics[m].adds_up ? value / kernels
                                                     : std::numeric_limits<double>::quiet_NaN());
  }
  return samples;
}

}  // namespace

GraphSamples samples_of_graph(const GraphRanges& read) {
  if (read.kernels.empty() || read.values.size() != read.ranges * read.metrics.size())
    return of_no_use(GraphVerdict::kOtherNumber);
  if (read.ranges == 0) return of_no_use(GraphVerdict::kNoRange);
  if (read.ranges == read.kernels.size()) return per_kernel(read);
  if (read.ranges == 1) return together(read);
  return of_no_use(GraphVerdict::kOtherNumber);
}

std::string_view words_for(GraphVerdict verdict) {
  switch (verdict) {
    case GraphVerdict::kPerKernel:
      return "a range for each kernel";
    case GraphVerdict::kTogether:
      return "one range for kernels that are all alike";
    case GraphVerdict::kNoRange:
      return "no range";
    case GraphVerdict::kUnordered:
      return "as many ranges as kernels, and nothing says which is whose";
    case GraphVerdict::kUnlike:
      return "one range for kernels that differ";
    case GraphVerdict::kElsewhere:
      return "one range, and the program has other contexts";
    case GraphVerdict::kRemainder:
      return "one range, and kernels of one signature whose work differs";
    case GraphVerdict::kOtherNumber:
      return "neither one range nor as many as kernels";
  }
  return "";
}

bool adds_up_over_kernels(std::string_view metric) {
  return metric.ends_with(".sum") && !metric.starts_with("gpu__time");
}

// The longest chain of kernels that ends in each node, in an order in which every node comes after
// those it depends on. All kernels are in one chain where the longest one has as many.
std::optional<std::vector<uint32_t>> places_in_chain(
    const std::vector<bool>& kernel, std::span<const std::pair<uint32_t, uint32_t>> edges) {
  const size_t nodes = kernel.size();
  std::vector<std::vector<uint32_t>> next(nodes);
  std::vector<uint32_t> waits_for(nodes, 0);
  for (const auto& [from, to] : edges) {
    if (from >= nodes || to >= nodes) return std::nullopt;
    next[from].push_back(to);
    ++waits_for[to];
  }
  std::vector<uint32_t> ready;
  for (uint32_t n = 0; n < nodes; ++n)
    if (waits_for[n] == 0) ready.push_back(n);
  std::vector<uint32_t> before(nodes, 0);  // kernels, on the longest way to the node
  uint32_t longest = 0;
  for (size_t i = 0; i < ready.size(); ++i) {
    const uint32_t node = ready[i];
    const uint32_t with_it = before[node] + (kernel[node] ? 1 : 0);
    longest = std::max(longest, with_it);
    for (const uint32_t to : next[node]) {
      before[to] = std::max(before[to], with_it);
      if (--waits_for[to] == 0) ready.push_back(to);
    }
  }
  const auto kernels = static_cast<uint32_t>(std::ranges::count(kernel, true));
  if (ready.size() != nodes || kernels == 0 || longest != kernels) return std::nullopt;
  return before;
}

}  // namespace flopinj
