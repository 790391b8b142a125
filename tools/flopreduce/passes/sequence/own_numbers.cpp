#include "passes/sequence/own_numbers.h"

#include <algorithm>

#include "tables/kernels.h"

namespace flopinj::reduce {

static_assert(PathTable::kRoot == 0);

void OwnNumbers::add(Lane& lane, uint32_t own) {
  if (lane.own.size() < kMaxInNode &&
      std::find(lane.own.begin(), lane.own.end(), own) == lane.own.end())
    lane.own.push_back(own);
}

void OwnNumbers::count(Lane& lane) {
  for (const uint32_t own : lane.own) ++(lane.plain ? runs_[own].again : runs_[own].gradient);
  lane.own.clear();
}

// The last launch without a number is the node's own: those before an operator with one ran again.
void OwnNumbers::end_node(Lane& lane) {
  const size_t last = lane.without.empty() ? 0 : lane.without.back().second;
  const size_t first = lane.without.empty() ? 0 : lane.without.front().second;
  if (first != last)
    for (const auto& [path, owns] : lane.without)
      ++(owns < last ? without_[path].again : without_[path].gradient);
  lane.without.clear();
}

bool OwnNumbers::again(const RunsOf& runs, uint32_t of) {
  const auto found = runs.find(of);
  return found != runs.end() && found->second.again > found->second.gradient;
}

std::vector<bool> OwnNumbers::take(size_t paths) const {
  std::vector<bool> again(runs_.empty() ? 0 : paths, false);
  for (uint32_t path = 0; path < again.size(); ++path)
    again[path] = this->again(runs_, operators_.own_number_of(path)) || this->again(without_, path);
  return again;
}

}  // namespace flopinj::reduce
