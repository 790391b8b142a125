#include "passes/sequence/own_numbers.h"

#include <algorithm>
#include <span>

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

// Of the first of the launches without a number. The last one that is in nothing else is the
// node's own: those before an operator with a number ran again, but for what other nodes computed.
void OwnNumbers::end_node(Lane& lane, size_t launches) {
  const std::span without(lane.without.data(), launches);
  size_t last = 0;
  for (const Without& launch : without)
    if (!in_a_call(launch.of)) last = launch.owns;
  const auto ran_again = [&](const Without& launch) {
    if (launch.of == Of::kLayer) return lane.owns_before < last;
    return launch.of != Of::kEvaluated && launch.owns < last;
  };
  if (std::ranges::any_of(without, ran_again))
    for (const Without& launch : without)
      ++(ran_again(launch) ? without_[launch.path].again : without_[launch.path].gradient);
  if (!without.empty()) lane.owns_before = std::max(lane.owns_before, last);
  lane.without.erase(lane.without.begin(), lane.without.begin() + static_cast<ptrdiff_t>(launches));
}

// The same node's range, and another node: what is in functions and modules behind the last launch
// of the node before is a part of this one, if it ran again.
void OwnNumbers::end_run(Lane& lane) {
  size_t launches = lane.without.size();
  while (launches > 0 && in_a_call(lane.without[launches - 1].of) &&
         lane.without[launches - 1].owns < lane.owns)
    --launches;
  end_node(lane, launches);
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
