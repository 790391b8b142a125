#include "sections/comparison.h"

#include <algorithm>

#include "sections/parts/json_parts.h"
#include "support/si_number.h"

namespace flopinj::reduce {
namespace {

Cell cell(const auto& value) { return value ? Cell(*value) : Cell::none(); }

Table work_table(const char* key, const char* heading, const std::vector<ComparedWork>& works,
                 const Normalization& n) {
  Table table{key,
              {{"name", heading},
               {"change", "change", Kind::kText, Worth::kMain},
               {"launches_a", "launches A", Kind::kCount},
               {"launches_b", "launches B", Kind::kCount},
               {"flop_per_launch_a", "FLOP/launch A", Kind::kFlop},
               {"flop_per_launch_b", "FLOP/launch B", Kind::kFlop},
               {"flop_ratio", "FLOP B/A", Kind::kRatio, Worth::kMain},
               {"gpu_time_a_ns", "time A", Kind::kNanoseconds, Worth::kDetail},
               {"gpu_time_b_ns", "time B", Kind::kNanoseconds, Worth::kDetail},
               {"gpu_time_ratio", "time B/A", Kind::kRatio, Worth::kMain}}};
  table.long_list = true;
  for (const auto& w : works)
    table.rows.push_back({w.name, change_word(w.change), cell(w.launches.a), cell(w.launches.b),
                          cell(w.flop_per_launch.a), cell(w.flop_per_launch.b),
                          cell(w.flop.normalized(n)), cell(w.gpu_time_ns.a), cell(w.gpu_time_ns.b),
                          cell(w.gpu_time_ns.normalized(n))});
  return table;
}

std::string count_text(const std::vector<ComparedWork>& kernels, Change change) {
  const auto n = std::count_if(kernels.begin(), kernels.end(),
                               [&](const auto& k) { return k.change == change; });
  return std::to_string(n) + " " + change_word(change);
}

Json flop_json(u128 flop) { return decimal(flop); }
Json mean_json(double mean) { return mean; }

// `value_json` says a side that is known.
template <typename Value>
Json pair_json(const Pair<Value>& pair, const Normalization& n, Json (*value_json)(Value)) {
  const auto side = [&](const std::optional<Value>& value) {
    return value ? value_json(*value) : Json(nullptr);
  };
  return {{"a", side(pair.a)},
          {"b", side(pair.b)},
          {"ratio", optional_json(pair.ratio())},
          {"normalized_ratio", optional_json(pair.normalized(n))}};
}

Json work_json(const ComparedWork& w, const Normalization& n) {
  return {{"name", w.name},
          {"change", change_word(w.change)},
          {"launches", pair_json(w.launches, n, time_json)},
          {"flop", pair_json(w.flop, n, flop_json)},
          {"flop_per_launch", pair_json(w.flop_per_launch, {}, mean_json)},
          {"gpu_time_ns", pair_json(w.gpu_time_ns, n, time_json)},
          {"time_per_launch_ns", pair_json(w.time_per_launch_ns, {}, mean_json)}};
}

}  // namespace

std::vector<Section> comparison_sections(const Comparison& c) {
  const Normalization& n = c.normalization;
  std::vector<Section> sections;
  Section head;
  if (c.simulated)
    head.above.emplace_back("SIMULATED: at least one side was recorded on simgpu.", Tone::kWarn);
  head.above.emplace_back(n.name.empty() ? "Ratios are B / A."
                                         : "Ratios are B / A after dividing by " + n.name + ": " +
                                               format_si(n.a) + " and " + format_si(n.b) + ".");
  sections.push_back(std::move(head));
  std::vector<ComparedWork> phases = {c.total};
  phases.insert(phases.end(), c.phases.begin(), c.phases.end());
  sections.push_back(
      {"Total and phases", {}, work_table("compared_phases", "phase", phases, n), {}});
  sections.push_back(
      {"Kernels",
       {"  " + count_text(c.kernels, Change::kAppeared) + ", " +
        count_text(c.kernels, Change::kVanished) + ", " + count_text(c.kernels, Change::kChanged) +
        ", " + count_text(c.kernels, Change::kSame)},
       work_table("compared_kernels", "kernel", c.kernels, n),
       {}});
  return sections;
}

nlohmann::ordered_json comparison_json(const Comparison& c) {
  const Normalization& n = c.normalization;
  Json j;
  j["schema_version"] = 1;
  j["simulated"] = c.simulated;
  j["normalization"] =
      n.name.empty() ? Json(nullptr) : Json{{"name", n.name}, {"a", n.a}, {"b", n.b}};
  j["total"] = work_json(c.total, n);
  j["phases"] = list_json(c.phases, [&](const auto& w) { return work_json(w, n); });
  j["kernels"] = list_json(c.kernels, [&](const auto& w) { return work_json(w, n); });
  for (const Change change :
       {Change::kAppeared, Change::kVanished, Change::kChanged, Change::kSame})
    j["kernel_counts"][change_word(change)] = std::count_if(
        c.kernels.begin(), c.kernels.end(), [&](const auto& k) { return k.change == change; });
  return j;
}

nlohmann::ordered_json comparison_gate_json(const Comparison& c) {
  Json j = comparison_json(c);
  for (const auto& phase : c.absent_phases) j["phases"].push_back(work_json(phase, {}));
  return j;
}

}  // namespace flopinj::reduce
