// Where each FLOP figure comes from. For programs; people ask about one kernel.
#include "sections/launch_tables.h"
#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

const char* parameters_of(const SignatureReport& s) { return word_of(s.parameter_class); }

}  // namespace

namespace launches {
namespace {

std::string text_of(const std::array<uint32_t, 3>& d) {
  return std::to_string(d[0]) + "x" + std::to_string(d[1]) + "x" + std::to_string(d[2]);
}

// Of the signature that all launches of a row have.
template <typename F>
auto of_signature(F get) {
  return of_common(by::kSignature, &Report::signatures, get);
}
// The same of what not every signature has.
template <typename F>
auto where_known(F get) {
  return [get](const LaunchRow& row, const Report& report) {
    const auto known = of_signature(get)(row, report);
    return known ? *known : std::invoke_result_t<F, const SignatureReport&>();
  };
}
std::optional<double> where_varying(const SignatureReport& s, std::optional<double> value) {
  return s.varying ? value : std::nullopt;
}

}  // namespace

void shape(Columns<LaunchRow>& c) {
  using Signature = SignatureReport;
  c.text("grid", "grid", of_signature([](const Signature& s) { return text_of(s.grid); }));
  c.text("block", "block", of_signature([](const Signature& s) { return text_of(s.block); }));
  c.text("cluster", "cluster", where_known([](const Signature& s) {
           return s.cluster[0] != 0 ? std::optional(text_of(s.cluster)) : std::nullopt;
         }),
         "null where the launch has no clusters");
  c.figure("dynamic_shared_bytes", "shared memory", Kind::kBytes,
           where_known([](const Signature& s) { return Figure::exact(s.dynamic_shared_bytes); }));
  c.text("parameters", "parameters", of_signature(parameters_of),
         "exact, unknown, merged or unspecified");
  c.count("samples", "samples", of_signature(&Signature::samples),
          "readings of the required group that has fewest, over all processes");
  c.figure("flop_per_launch", "FLOP per launch", Kind::kFlop,
           where_known([](const Signature& s) { return Figure::exact(s.flop_per_launch); }),
           "FLOP of one launch; null where samples disagree or are missing");
}
void reason(Columns<LaunchRow>& c) {
  c.text("unmeasured_reason", "why unmeasured", of_signature(&SignatureReport::unmeasured_reason));
}
void readings(Columns<LaunchRow>& c) {
  using Signature = SignatureReport;
  c.count("graph_samples", "samples in graphs", of_signature(&Signature::graph_samples),
          "of samples: read in graph launches");
  c.count("windows", "readings", of_signature(&Signature::windows),
          "how often its counters were read, those of the group that was read least; 0 where "
          "unmeasured");
  c.flag("varying", "varying", of_signature(&Signature::varying),
         "samples disagree, or are rounded");
  c.flag("rounded", "rounded", of_signature(&Signature::rounded),
         "samples agree, but were rounded by the counter: they are no whole numbers below 2^53");
  c.exact("flop_mean", "mean FLOP", Kind::kRatio,
          where_known([](const Signature& s) { return where_varying(s, s.flop_mean); }),
          "of one launch, where they vary");
  c.exact("flop_standard_deviation", "standard deviation", Kind::kRatio,
          where_known([](const Signature& s) { return where_varying(s, s.flop_spread); }),
          "of one launch, between windows, where they vary");
}

}  // namespace launches

namespace {

using SampleRow = Of<SignatureReport, MetricReport>;
Columns<SampleRow> sample_columns() {
  using Metric = MetricReport;
  using Meaning = MetricMeaning;
  const auto stat = [](auto get) { return of_one(through(&Metric::stat, get)); };
  const auto meaning = [](auto get) { return of_one(through(&Metric::meaning, get)); };
  const auto instructions = [&](auto get) {
    return [get](const SampleRow& row) {
      const InstructionCounts& i = row.one.meaning.instructions;
      return i.none + i.one > 0 ? std::optional(i.*get) : std::nullopt;
    };
  };
  Columns<SampleRow> c;
  c.text("kernel", "kernel", of_outer(&SignatureReport::kernel));
  c.text(said::kStableHash, [](const SampleRow& row) { return hash_text(row.of.stable_hash); });
  c.text("chip", "chip", of_outer(&SignatureReport::chip));
  c.text("metric", "metric", of_one(&Metric::metric), "a counter's, that counts FLOP");
  c.count("samples", "samples", stat(&MetricStat::n), "readings of the counter");
  c.figure("mean", "mean", Kind::kRatio, exactly(stat(&MetricStat::mean)));
  c.figure("standard_deviation", "standard deviation", Kind::kRatio,
           exactly(stat(&MetricStat::spread)));
  c.figure("min", "min", Kind::kRatio, exactly(stat(&MetricStat::min)));
  c.figure("max", "max", Kind::kRatio, exactly(stat(&MetricStat::max)));
  c.count("counted", "counted", of_one(&Metric::counted),
          "over all launches of the signature, extrapolated");
  c.count("weight_numerator", "weight", meaning(&Meaning::numerator),
          "operations that one counted instruction or operation stands for, as a fraction");
  c.count("weight_denominator", "of", meaning(&Meaning::denominator));
  c.count("weight_least_numerator", "least weight", meaning(&Meaning::least),
          "the least that the weight can be");
  c.count("weight_full_numerator", "full weight", meaning(&Meaning::full),
          "the weight of an instruction that computes all it can");
  c.count("instructions_none", "none", instructions(&InstructionCounts::none),
          "the metric's instructions in the kernel's code whose lanes compute nothing; null where "
          "all compute all they can, or the code was not read");
  c.count("instructions_one", "one", instructions(&InstructionCounts::one),
          "likewise: whose lanes compute one operation each");
  c.count("instructions_all", "all", instructions(&InstructionCounts::all),
          "likewise: that compute all they can");
  c.exact("flop", "FLOP", Kind::kFlop, of_one(&Metric::flop),
          "counted times the weight; integer operations where the precision is an integer format");
  c.text("precision", "precision", of_one(&Metric::precision));
  c.text("parameters", "parameters", of_outer(parameters_of),
         "of the signature; signatures that differ only here have equal names, hashes and chips");
  return c;
}

const TableSource kSampleTable =
    TableSource("samples", "what the counters gave, by signature", sample_columns,
                each_of(&Report::signatures, &SignatureReport::metrics))
        .long_list();

}  // namespace

const Subject kSignatures = {{&launch_table("signatures"), &kSampleTable}};

}  // namespace flopinj::reduce
