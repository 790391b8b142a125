// Which rank is slow: its kernels beside the same kernels on the job's other ranks.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "report/build_report.h"
#include "support/median.h"

namespace flopinj::reduce {
namespace {

// A signature in a range, by its stable hash: a rank may be slow since its GPU is of another kind.
using Place = std::pair<uint32_t, uint64_t>;

// What a place's kernels took on each device where one has a time, in the order of devices.
std::vector<TimedRow> times_in(const TimedRows& all, const std::vector<TimedPlace>& places) {
  std::vector<TimedRow> times;
  TimedRow row;
  for (const TimedPlace& place : places)
    for (auto rows = all.rows(place); rows.next(row);)
      if (row.timed > 0) times.push_back(row);
  std::ranges::sort(times, {}, &TimedRow::device);
  size_t size = 0;
  for (const TimedRow& time : times)
    if (size > 0 && times[size - 1].device == time.device)
      times[size - 1].add(time);
    else
      times[size++] = time;
  times.resize(size);
  return times;
}

double mean_of(const TimedRow& timed) {
  return static_cast<double>(timed.ns) / static_cast<double>(timed.timed);
}

}  // namespace

void build_slowdowns(const ReportSources& from, const std::vector<uint32_t>& range_of,
                     Report& report) {
  const TimedRows& all = from.totals.timed_rows;
  std::map<Place, std::vector<TimedPlace>> places;
  all.for_each_key([&](const TimedPlace& of) {
    if (from.rules.rules()[of.rule].phase != "communication")
      places[{range_of[of.path], from.tables.signatures[of.signature].stable_hash}].push_back(of);
  });
  std::map<std::pair<uint32_t, uint32_t>, RankSlowdown> devices;  // by trace
  for (const auto& [place, of] : places) {
    const std::vector<TimedRow> times = times_in(all, of);
    std::vector<double> means;
    for (const TimedRow& timed : times) means.push_back(mean_of(timed));
    const double usual = means.size() > 1 ? median(means) : 0;
    for (const TimedRow& timed : times) {
      const Device& device = from.tables.devices[timed.device];
      RankSlowdown& made = devices[{device.trace, timed.device}];
      made.trace = device.trace;
      if (device.id > 0) made.device = device.id - 1;
      if (times.size() < 2) continue;
      add_saturating(made.timed_ns, timed.ns);
      made.usual_ns += static_cast<double>(timed.timed) * usual;
    }
  }
  if (devices.size() < 2) return;
  for (auto& [device, made] : devices) report.ranks.slowdowns.push_back(std::move(made));
}

}  // namespace flopinj::reduce
