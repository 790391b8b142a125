// Which rank is slow: its kernels beside the same kernels on the job's other ranks.
#include <map>
#include <optional>
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
using TimedPlaces = std::map<Place, Timed>;  // their sums do not depend on the order of rows

// Calls visit(device, its times) for each device that has some, in the order of traces.
template <typename Visit>
void each_device(const ReportSources& from, const std::vector<uint32_t>& range_of, Visit&& visit) {
  for (const auto& [trace, rows] : from.totals.facts) {
    std::map<uint32_t, TimedPlaces> devices;
    for (const FactRow& row : rows) {
      if (row.counts.timed == 0 || from.rules.rules()[row.rule].phase == "communication") continue;
      Timed& sum = devices[row.device]
                          [{range_of[row.path], from.tables.signatures[row.signature].stable_hash}];
      sum.launches += row.counts.timed;
      add_saturating(sum.ns, row.counts.time_ns);
    }
    for (const auto& [device, times] : devices) visit(from.tables.devices[device], times);
  }
}

double mean_of(const Timed& timed) {
  return static_cast<double>(timed.ns) / static_cast<double>(timed.launches);
}

}  // namespace

void build_slowdowns(const ReportSources& from, const std::vector<uint32_t>& range_of,
                     Report& report) {
  std::map<Place, std::vector<double>> means;
  size_t devices = 0;
  each_device(from, range_of, [&](const Device&, const TimedPlaces& times) {
    ++devices;
    for (const auto& [place, timed] : times) means[place].push_back(mean_of(timed));
  });
  if (devices < 2) return;  // a form that has no facts has no times of a single one
  std::map<Place, double> usual;
  for (auto& [place, of_devices] : means)
    if (of_devices.size() > 1) usual.emplace(place, median(of_devices));
  each_device(from, range_of, [&](const Device& device, const TimedPlaces& times) {
    RankSlowdown& made = report.ranks.slowdowns.emplace_back();
    made.trace = device.trace;
    if (device.id > 0) made.device = device.id - 1;
    for (const auto& [place, timed] : times) {
      const auto expected = usual.find(place);
      if (expected == usual.end()) continue;
      add_saturating(made.timed_ns, timed.ns);
      made.usual_ns += static_cast<double>(timed.launches) * expected->second;
    }
  });
}

}  // namespace flopinj::reduce
