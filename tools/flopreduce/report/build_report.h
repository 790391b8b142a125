// From the joined tables to a report.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phases/operator_calls.h"
#include "phases/operators.h"
#include "phases/phases.h"
#include "report/report.h"
#include "report/work_table.h"
#include "tables/formulas.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// What a report is made of. All must outlive the making.
struct ReportSources {
  const TraceTables& tables;
  const Totals& totals;
  const PhaseRules& rules;
  const PhaseMap& phases;
  const OperatorMap& operators;
  const OperatorCalls& calls;
  Formulas& formulas;
  WorkTable& work;
  const UtilizationOptions& utilization;
  bool facts = false;  // Report::facts
  const GivenFormulas* given = nullptr;
};

// Fills everything but damage, errors and the traces' file names.
Report build_report(const ReportSources& from);

// Most FLOP first.
inline constexpr auto kMoreFlop = [](const auto& a, const auto& b) {
  return std::pair(a.work.flop, a.work.launches) > std::pair(b.work.flop, b.work.launches);
};
// Puts a list in order: where each of its elements went.
template <typename T, typename Before>
std::vector<uint32_t> places_when_sorted(std::vector<T>& list, Before before) {
  std::vector<uint32_t> order(list.size()), places(list.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, before, [&](uint32_t i) -> const T& { return list[i]; });
  std::vector<T> sorted;
  for (const uint32_t from : order) {
    places[from] = static_cast<uint32_t>(sorted.size());
    sorted.push_back(std::move(list[from]));
  }
  list = std::move(sorted);
  return places;
}

// Its parts, each in a file of its own.

// What became of every launch: made = measured + extrapolated + unmeasured + dropped, per device
// and in total.
void build_ledger(const ReportSources& from, const WorkTable& work, Report& report);
// Why a signature's launches on devices of this kind have no FLOP count; empty where they have one.
std::string reason_of(const TraceTables& tables, const WorkTable& work, uint32_t signature,
                      uint32_t chip);

// `samples`: the trace has samples of counters.
CounterReport counter_reading(const Recorded& trace, bool samples);

// Which recordings belong together: Report::runs and TraceReport::run. The report's traces and time
// must be there.
void build_runs(Report& report);

// The processes of a job side by side: who started late, who is missing. The report's
// traces must be there. GPU time is as everywhere in the report: launches without a time outside of
// windows have the mean of their signature's other launches.
void build_ranks(const ReportSources& from, const WorkTable& work, Report& report);

TimeReport build_time_report(const TraceTables& tables, const Totals& totals);

// backward / forward and what it should be. `forward_matrix`: matrix FLOP of forward-phase launches
// directly in each range path (not below it). `operators` is done.
//
// The expected ratio is, of these, the first that is known (report/operators/forward_backward.h):
// the operators' by evidence, where they hold half of forward's matrix FLOP or more; the layers',
// where backward names them too; the range from 2 - f1 to 2, where f1 is the first layer's share
// and every layer is assumed to be trained. The measured ratio has no part in it.
RatioReport backward_forward(const ReportSources& from, const Work& forward, const Work& backward,
                             const OperatorsReport& operators, std::vector<u128> forward_matrix);

// Numbers of ranges. `range_of`: by PathTable, the place in Report::ranges.
void add_numbers(const TraceTables& tables, const std::vector<uint32_t>& range_of, Report& report);
void add_copies(const TraceTables& tables, Report& report);
// What needs the FLOP of training steps.
void add_step_numbers(Report& report);

// What each process did, by thread, stream, range path, rule and signature: report.facts, from
// totals.facts. FLOP of the facts add up to the report's total. `range_of` as above; `signatures`:
// by signature_key(), the place in Report::signatures.
using SignaturePlaces = std::unordered_map<uint64_t, uint32_t>;
inline uint64_t signature_key(uint32_t signature, uint32_t chip) {
  return uint64_t{signature} << 32 | chip;
}
void build_facts(const ReportSources& from, const std::vector<uint32_t>& range_of,
                 const SignaturePlaces& signatures, WorkTable& work, Report& report);
// Of totals.facts. `range_of`: likewise.
void build_slowdowns(const ReportSources& from, const std::vector<uint32_t>& range_of,
                     Report& report);

}  // namespace flopinj::reduce
