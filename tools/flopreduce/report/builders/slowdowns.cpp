// Which rank is slow: its kernels beside the same kernels on the job's other ranks.
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "report/build_report.h"
#include "support/median.h"

namespace flopinj::reduce {
namespace {

// A signature in a range, by its stable hash: a rank may be slow since its GPU is of another kind.
using Place = std::pair<uint32_t, uint64_t>;
struct Timed {
  uint64_t launches = 0, ns = 0;
};
using TimedPlaces = std::map<Place, Timed>;  // their sums do not depend on the order of facts

// Calls visit(fact of the device, its times) for each device that has some: facts are in their
// order.
template <typename Visit>
void each_device(const Report& report, Visit&& visit) {
  TimedPlaces times;
  std::optional<FactReport> last;
  for (const FactReport& fact : report.facts) {
    if (last && std::tie(last->trace, last->device) != std::tie(fact.trace, fact.device)) {
      if (!times.empty()) visit(*last, times);
      times.clear();
    }
    last = fact;
    const PathReport& path = report.paths[fact.path];
    if (fact.timed == 0 || report.rules[path.rule].phase == "communication") continue;
    Timed& sum = times[{path.range, report.signatures[fact.signature].stable_hash}];
    sum.launches += fact.timed;
    add_saturating(sum.ns, fact.time_ns);
  }
  if (!times.empty()) visit(*last, times);
}

double mean_of(const Timed& timed) {
  return static_cast<double>(timed.ns) / static_cast<double>(timed.launches);
}

}  // namespace

void build_slowdowns(Report& report) {
  std::map<Place, std::vector<double>> means;
  each_device(report, [&](const FactReport&, const TimedPlaces& times) {
    for (const auto& [place, timed] : times) means[place].push_back(mean_of(timed));
  });
  std::map<Place, double> usual;
  for (auto& [place, of_devices] : means)
    if (of_devices.size() > 1) usual.emplace(place, median(of_devices));
  each_device(report, [&](const FactReport& of, const TimedPlaces& times) {
    RankSlowdown& made = report.ranks.slowdowns.emplace_back();
    made.trace = of.trace;
    made.device = of.device;
    for (const auto& [place, timed] : times) {
      const auto expected = usual.find(place);
      if (expected == usual.end()) continue;
      add_saturating(made.timed_ns, timed.ns);
      made.usual_ns += static_cast<double>(timed.launches) * expected->second;
    }
  });
}

}  // namespace flopinj::reduce
