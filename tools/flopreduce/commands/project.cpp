// flopreduce project train | infer: what a whole training run or an inference takes.
#include <memory>

#include "commands/arguments/command.h"
#include "commands/projection_arguments.h"
#include "commands/result.h"
#include "commands/run.h"
#include "commands/schemas.h"
#include "projection/projection.h"

namespace flopinj::reduce {
namespace {

struct Row {
  PeakArguments::Choice choice;
  Inference inference;
};

void inference_fields(Fields& f, double flop, double utilization, const std::vector<Row>& rows) {
  f.version();
  f("forward_flop", flop, "of one example, all time steps");
  f.share("utilization", utilization);
  f.list("inference", rows, "", [](Fields& row, const Row& r) {
    row("precision", r.choice.precision);
    row("peak_flop_per_s", r.choice.flop_per_s);
    row("time_s", r.inference.seconds, "of one example");
    row("examples_per_s", r.inference.examples_per_second);
    row("source", r.choice.source);
  });
}

Result result_of(double flop, double utilization,
                 const std::vector<PeakArguments::Choice>& chosen) {
  const std::vector<Column> columns = {{"precision", "precision"},
                                       {"peak_flop_per_s", "peak", Kind::kRate},
                                       {"time_s", "time of one"},
                                       {"examples_per_s", "per second"}};
  Table people{"inference", columns}, programs{"inference", columns};
  programs.columns.push_back({"source", "source"});
  std::vector<Line> sources;
  std::vector<Row> rows;
  for (const auto& c : chosen) {
    const Inference i = inference(flop, c.flop_per_s, utilization);
    rows.push_back({c, i});
    people.rows.push_back(
        {c.precision, c.flop_per_s, duration_text(i.seconds), plain(i.examples_per_second)});
    programs.rows.push_back(
        {c.precision, c.flop_per_s, i.seconds, i.examples_per_second, c.source});
    sources.emplace_back("  " + c.precision + ": " + c.source, Tone::kDim);
  }
  Result result;
  result.sections = {
      {"Inference of " + scientific(flop) + " FLOP at " + plain(100 * utilization) + " % of peak",
       {},
       std::move(people),
       std::move(sources)}};
  result.tables = {std::move(programs)};
  result.json = [=] {
    return Fields::json_of([&](Fields& f) { inference_fields(f, flop, utilization, rows); });
  };
  return result;
}

struct InferArguments {
  InputArguments input;
  OutputArguments output;
  PeakArguments peak;
  std::optional<double> forward, recurrent, utilization, trace_examples;
};

int run_infer(InferArguments& a, const CLI::App& app) {
  auto& [input, output, peak, forward, recurrent, utilization, trace_examples] = a;
  input.finish();
  output.finish(input.files());
  if (!valid_utilization(utilization)) return kExitUsage;
  if (trace_examples && !without_effect(app, {"--recurrent-steps"},
                                        "the traces hold all time steps of their examples"))
    return kExitUsage;
  if (!trace_examples &&
      !without_effect(app, {"--fma", "--phase", "--rules", "--names"}, "they are for traces"))
    return kExitUsage;
  if (above_zero(forward) == above_zero(trace_examples) ||
      input.traces.empty() != !above_zero(trace_examples)) {
    complain("give --forward-flop, or traces and --trace-examples");
    return kExitUsage;
  }
  if (!peak.any()) {
    complain("--gpu or --peak is missing");
    return kExitUsage;
  }
  if (trace_examples) {
    const Reduced reduced = reduce_traces(input);
    if (!reduced.report || reduced.exit_code != kExitFine) return reduced.exit_code;
    const PhaseReport* phase = nullptr;
    for (const auto& p : reduced.report->phases)
      if (p.name == "forward") phase = &p;
    if (phase == nullptr) {
      complain("the traces have no forward phase; --phase says which ranges are");
      return kExitUsage;
    }
    forward = share_of(phase->work, *trace_examples, "forward phase");
    if (!forward) return kExitPartial;
  }
  const auto chosen = peak.choose(input.reduce.fma);
  if (!chosen) return kExitUsage;
  const double u = utilization.value_or(1);
  const double flop = *forward * recurrent.value_or(1);
  if (!possible("forward FLOP", flop)) return kExitUsage;
  for (const auto& c : *chosen) {
    const Inference i = inference(flop, c.flop_per_s, u);
    if (!possible("the time of one example", i.seconds) ||
        !possible("examples per second", i.examples_per_second))
      return kExitUsage;
  }
  return write_result(result_of(flop, u, *chosen), output);
}

Action define_infer(manual::CommandLine& app) {
  app.examples = {{"flopreduce project infer --forward-flop 15503M --gpu 'K80 board'",
                   "time of one image of VGG-16 on a K80"}};
  const auto a = std::make_shared<InferArguments>();
  app.add_option("TRACE", a->input.traces,
                 "Traces whose forward phase holds --trace-examples examples");
  a->input.add_to(app, false);
  add_number(app, "--forward-flop", a->forward, "FLOP of one example");
  add_number(app, "--recurrent-steps", a->recurrent, "Time steps of one example (1)");
  add_number(app, "--trace-examples", a->trace_examples, "Examples that the traces hold");
  add_number(app, "--utilization", a->utilization, "Share of peak that is reached (1)");
  a->peak.add_to(app);
  a->output.add_to(app, result_forms());
  return [a, &app] { return run_infer(*a, app); };
}

constexpr Command kInfer = {"infer", "time and throughput of one forward pass",
                            "Time and throughput of one forward pass at a share of peak.",
                            define_infer};
constexpr const Command* kWords[] = {&kTrain, &kInfer};

}  // namespace

Json inference_schema() {
  return Fields::schema_of("flopreduce project infer",
                           "Time and throughput of one forward pass. Times are seconds; one fused "
                           "multiply-add counts 2.",
                           [](Fields& f) { inference_fields(f, 0, 0, {}); });
}

const Command kProject = {"project", "compute of a whole training run, time of an inference",
                          "What a whole training run or an inference takes.", nullptr, kWords};

}  // namespace flopinj::reduce
