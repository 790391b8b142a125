#include <map>
#include <set>

#include "phases/given_formulas.h"
#include "report/build_report.h"

namespace flopinj::reduce {
namespace {

struct Sum {
  uint64_t times = 0;
  u128 total = 0;
};
using Sums = std::map<uint32_t, Sum>;  // by PathTable

bool is_outermost(const TraceTables& tables, const Sums& sums, uint32_t path) {
  while (path > PathTable::kLost)
    if (path = tables.paths[path].parent; sums.contains(path)) return false;
  return true;
}

std::set<uint32_t> step_paths(const TraceTables& tables) {
  std::set<uint32_t> paths;
  for (const TraceState& trace : tables.traces) {
    if (!trace.steps.any()) continue;
    paths.insert(trace.paths.get(trace.steps.sums().path));
    for (const auto& [number, step] : trace.steps.steps()) paths.insert(trace.paths.get(step.path));
  }
  return paths;
}

// Of flopinj.formula: the work itself, and not what it is done on.
bool is_formula(const TraceTables& tables, const RangeNumber& number) {
  return tables.names[number.name] == kFormulaNumber &&
         tables.names[tables.paths[number.path].name].starts_with(kFormulaRange);
}

// Unmeasured launches beside none with FLOP: what they do is not 0.
bool is_known(const Work& work) {
  return work.flop_known() && (work.flop > 0 || work.flop_complete());
}

std::optional<double> each(double flop, u128 total) {
  return total == 0 ? std::nullopt : std::optional(flop / static_cast<double>(total));
}

}  // namespace

void add_copies(const TraceTables& tables, Report& report) {
  static constexpr const char* kDirections[] = {
      "other",         "host to device",  "device to host",
      "within device", "between devices", "host to host",
      "fill"};
  for (size_t trace = 0; trace < tables.traces.size(); ++trace) {
    if (tables.traces[trace].skipped_steps.any()) continue;  // they are of the whole recording
    const trace::CopySums& sums = tables.traces[trace].copy_sums;
    for (int i = 0; i < sums.device_size(); ++i) {
      const bool known = trace::CopySums::Kind_IsValid(sums.kind(i));
      report.copies.push_back({trace, sums.device(i), kDirections[known ? sums.kind(i) : 0],
                               sums.copies(i), sums.bytes(i), sums.pageable_bytes(i),
                               sums.total_ns(i)});
    }
  }
}

void add_numbers(const TraceTables& tables, const std::vector<uint32_t>& range_of, Report& report) {
  std::map<std::string, Sums> by_name;
  std::map<std::string, size_t> processes;
  for (const TraceState& trace : tables.traces) {
    std::set<uint32_t> names;
    for (const RangeNumber& number : trace.numbers) {
      const std::string& name = tables.names[number.name];
      if (is_formula(tables, number)) continue;
      Sum& sum = by_name[name][number.path];
      add_saturating(sum.times, number.times);
      add_saturating(sum.total, static_cast<u128>(number.total));
      if (names.insert(number.name).second) ++processes[name];
    }
  }
  if (by_name.empty()) return;
  // Numbers are of the whole recording.
  const bool whole = std::ranges::none_of(
      tables.traces, [](const TraceState& trace) { return trace.skipped_steps.any(); });
  const std::set<uint32_t> steps = step_paths(tables);
  const std::vector<WorkGroup> in_range = group(report, {by::kAnyRange});  // one of each
  for (const auto& [name, sums] : by_name) {
    NumberReport& out = report.numbers.emplace_back();
    out.name = name;
    out.processes = processes[name];
    for (const auto& [path, sum] : sums) {
      NumberReport::InRange& one = out.ranges.emplace_back();
      if (path != PathTable::kRoot) one.range = tables.path_string(path);
      one.times = sum.times;
      one.total = sum.total;
      one.step = steps.contains(path);
      one.outermost = is_outermost(tables, sums, path);
      if (one.outermost) add_saturating(out.total, sum.total);
      if (!whole || one.step || range_of[path] == kNoRange) continue;
      const Work& inside = in_range[range_of[path]].work;
      if (!is_known(inside)) continue;
      one.flop_each = each(static_cast<double>(inside.flop), sum.total);
      one.estimate = inside.varying > 0;
      one.at_least = !inside.flop_complete();
    }
    if (whole && is_known(report.total))
      out.flop_each = each(static_cast<double>(report.total.flop), out.total);
  }
}

// Each step was given the number once, or nothing is said.
void add_step_numbers(Report& report) {
  const StepsReport& steps = report.steps;
  if (!steps.mean_flop) return;
  for (NumberReport& number : report.numbers)
    for (NumberReport::InRange& one : number.ranges) {
      if (!one.step || one.times != steps.count + steps.skipped) continue;
      one.flop_each = each(*steps.mean_flop * static_cast<double>(one.times), one.total);
      one.estimate = steps.flop_estimated;
    }
}

}  // namespace flopinj::reduce
