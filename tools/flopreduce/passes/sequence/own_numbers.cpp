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

bool OwnNumbers::runs_again(uint32_t own) const {
  const auto found = runs_.find(own);
  return found != runs_.end() && found->second.again > found->second.gradient;
}

std::vector<bool> OwnNumbers::take(size_t paths) const {
  std::vector<bool> again(runs_.empty() ? 0 : paths, false);
  for (size_t path = 0; path < again.size(); ++path)
    again[path] = runs_again(operators_.own_number_of(static_cast<uint32_t>(path)));
  return again;
}

}  // namespace flopinj::reduce
