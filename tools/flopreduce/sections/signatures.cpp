// Where each FLOP figure comes from. For programs; people ask about one kernel.
#include <cinttypes>
#include <cstdio>

#include "sections/parts/cells.h"
#include "sections/parts/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Json metric_json(const MetricReport& m) {
  Json j = {{"metric", m.metric},
            {"samples", m.samples},
            {"mean", m.mean},
            {"standard_deviation", m.spread},
            {"min", m.min},
            {"max", m.max},
            {"counted", decimal(m.counted)},
            {"weight_numerator", m.numerator},
            {"weight_denominator", m.denominator},
            {"flop", decimal(m.flop)},
            {"precision", m.precision}};
  if (m.least != m.numerator) j["weight_least_numerator"] = m.least;
  if (m.full != m.numerator) j["weight_full_numerator"] = m.full;
  if (const InstructionCounts& i = m.instructions; i.none + i.one > 0)
    j["instructions"] = {{"none", i.none}, {"one", i.one}, {"all", i.all}};
  return j;
}

}  // namespace

Json signature_json(const SignatureReport& s) {
  Json j;
  j["kernel"] = s.kernel;
  j["chip"] = s.chip;
  j["grid"] = s.grid;
  j["block"] = s.block;
  j["cluster"] = s.cluster[0] != 0 ? Json(s.cluster) : Json(nullptr);
  j["dynamic_shared_bytes"] = s.dynamic_shared_bytes;
  j["stable_hash"] = decimal(s.stable_hash);
  j["parameters"] = s.parameters;
  j["samples"] = s.samples;
  if (s.graph_samples > 0) j["graph_samples"] = s.graph_samples;
  j["varying"] = s.varying;
  if (s.rounded) j["rounded"] = true;
  j["flop_per_launch"] = s.flop_per_launch ? Json(decimal(*s.flop_per_launch)) : Json(nullptr);
  j["windows"] = s.windows;
  if (s.varying) {
    j["flop_mean"] = optional_json(s.flop_mean);
    j["flop_standard_deviation"] = optional_json(s.flop_spread);
  }
  j.update(work_json(s.work));
  if (!s.unmeasured_reason.empty()) j["unmeasured_reason"] = s.unmeasured_reason;
  j["metrics"] = list_json(s.metrics, metric_json);
  return j;
}

namespace {

void signatures_json(Json& j, const Report& report) {
  j["signatures"] = list_json(report.signatures, signature_json);
}

std::string shape(const std::array<uint32_t, 3>& d) {
  return std::to_string(d[0]) + "x" + std::to_string(d[1]) + "x" + std::to_string(d[2]);
}

// 16 hexadecimal digits: as a number it would not survive a spreadsheet.
std::string hash_text(uint64_t hash) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, hash);
  return text.data();
}

Table signature_table(const Report& report) {
  Table table{"signatures",
              {{"kernel", "kernel"},
               {"stable_hash", "hash"},
               {"chip", "chip"},
               {"grid", "grid"},
               {"block", "block"},
               {"cluster", "cluster"},
               {"dynamic_shared_bytes", "shared memory", Kind::kBytes},
               {"parameters", "parameters"},
               {"samples", "samples", Kind::kCount},
               {"flop_per_launch", "FLOP per launch", Kind::kFlop},
               {"flop", "FLOP", Kind::kFlop},
               {"launches", "launches", Kind::kCount},
               {"unmeasured_launches", "unmeasured", Kind::kCount},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds},
               {"unmeasured_reason", "why unmeasured"}}};
  table.long_list = true;
  for (const auto& s : report.signatures)
    table.rows.push_back({s.kernel, hash_text(s.stable_hash), s.chip, shape(s.grid), shape(s.block),
                          s.cluster[0] != 0 ? Cell(shape(s.cluster)) : Cell::none(),
                          uint64_t{s.dynamic_shared_bytes}, s.parameters, s.samples,
                          s.flop_per_launch ? Cell(*s.flop_per_launch) : Cell::none(),
                          exact_cell(s.work), s.work.launches, s.work.unmeasured, time_cell(s.work),
                          s.unmeasured_reason});
  return table;
}

Table sample_table(const Report& report) {
  Table table{"samples",
              {{"kernel", "kernel"},
               {"stable_hash", "hash"},
               {"chip", "chip"},
               {"metric", "metric"},
               {"samples", "samples", Kind::kCount},
               {"mean", "mean", Kind::kRatio},
               {"standard_deviation", "standard deviation", Kind::kRatio},
               {"min", "min", Kind::kRatio},
               {"max", "max", Kind::kRatio}}};
  table.long_list = true;
  for (const auto& s : report.signatures)
    for (const auto& m : s.metrics)
      table.rows.push_back({s.kernel, hash_text(s.stable_hash), s.chip, m.metric, m.samples, m.mean,
                            m.spread, m.min, m.max});
  return table;
}

std::vector<Table> signatures_tables(const Report& report) {
  return {signature_table(report), sample_table(report)};
}

}  // namespace

const Subject kSignatures = {nullptr, signatures_json, signatures_tables};

}  // namespace flopinj::reduce
