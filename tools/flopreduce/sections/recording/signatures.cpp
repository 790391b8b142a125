// Where each FLOP figure comes from. For programs; people ask about one kernel.
#include <cinttypes>
#include <cstdio>

#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

void metric_fields(Fields& f, const MetricReport& m) {
  f("metric", m.metric);
  f("samples", m.samples);
  f("mean", m.mean);
  f("standard_deviation", m.spread);
  f("min", m.min);
  f("max", m.max);
  f.flop("counted", m.counted, "over all launches of the signature, extrapolated");
  f("weight_numerator", m.numerator);
  f("weight_denominator", m.denominator);
  f("weight_least_numerator", m.least, "the least that the weight can be");
  f("weight_full_numerator", m.full, "the weight of an instruction that computes all it can");
  const InstructionCounts& i = m.instructions;
  f.object_if(i.none + i.one > 0, "instructions",
              "the metric's instructions in the kernel's code, by how many operations each of "
              "their lanes computes; null where all compute all they can, or the code was not "
              "read",
              [&](Fields& instructions) {
                instructions("none", i.none);
                instructions("one", i.one);
                instructions("all", i.all);
              });
  f.flop("flop", m.flop, "counted times the weight; OP where the precision is one of integer_op");
  f("precision", m.precision);
}

}  // namespace

std::string hash_text(uint64_t hash) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, hash);
  return text.data();
}

void signature_fields(Fields& f, const SignatureReport& s) {
  f("kernel", s.kernel);
  f("chip", s.chip);
  f("grid", s.grid);
  f("block", s.block);
  f.values_if(s.cluster[0] != 0, "cluster", s.cluster, "null where the launch has no clusters");
  f("dynamic_shared_bytes", s.dynamic_shared_bytes);
  f("stable_hash", hash_text(s.stable_hash), "the same in every trace of this program");
  f.word("parameters", s.parameters, {"exact", "unknown", "merged", "unspecified"});
  f("samples", s.samples, "of the required group that has fewest, over all processes");
  f("graph_samples", s.graph_samples, "of them: read in graph launches");
  f("windows", s.windows,
    "measurement windows that its FLOP rest on, of the metric group with fewest; 0 where "
    "unmeasured");
  f("varying", s.varying, "samples disagree, or are rounded");
  f("rounded", s.rounded,
    "samples agree, but were rounded by the counter: they are no whole numbers below 2^53");
  f.flop("flop_per_launch", s.flop_per_launch, "null where samples disagree or are missing");
  f("flop_mean", s.varying ? s.flop_mean : std::nullopt, "of one launch, where they vary");
  f("flop_standard_deviation", s.varying ? s.flop_spread : std::nullopt,
    "of one launch, between windows, where they vary");
  work_part(f, s.work);
  f("unmeasured_reason", text_or_null(s.unmeasured_reason));
  f.list("metrics", s.metrics, "that count FLOP", metric_fields);
}

namespace {

void signatures_list(Fields& f, bool shown, const std::vector<SignatureReport>& signatures) {
  f.list_if(shown, "signatures", signatures, "null with --no-signatures", signature_fields);
}

void signatures_fields(Fields& f, const Report& report) {
  signatures_list(f, true, report.signatures);
}

std::string shape(const std::array<uint32_t, 3>& d) {
  return std::to_string(d[0]) + "x" + std::to_string(d[1]) + "x" + std::to_string(d[2]);
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

void no_signatures(Fields& f) { signatures_list(f, false, {}); }

const Subject kSignatures = {nullptr, signatures_fields, signatures_tables};

}  // namespace flopinj::reduce
