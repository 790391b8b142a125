// flopreduce project train: training compute by operations, by device time, or both.
#include "commands/command.h"
#include "commands/projection_arguments.h"
#include "commands/run.h"
#include "projection/projection.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

struct TrainArguments {
  InputArguments input;
  std::optional<double> forward, backward_ratio, recurrent, non_recurrent, examples, epochs;
  std::optional<double> flop_per_step, steps, trace_steps;
  std::optional<double> devices, utilization;
  std::string time;
  PeakArguments peak;
};

// Method 1; nothing where no option of it was given. `failed` on an error, which was said.
std::optional<double> by_operations(TrainArguments& a, ProjectionResult& result, int& failed) {
  failed = kExitUsage;
  const bool by_examples = a.forward.has_value();
  const bool by_steps = a.flop_per_step || !a.input.traces.empty();
  if (by_examples && by_steps) {
    complain(
        "give the FLOP of an example (--forward-flop), of a step (--flop-per-step) or traces, "
        "not several");
    return std::nullopt;
  }
  if (by_examples) {
    if (!above_zero(a.examples)) {
      complain("--forward-flop needs --examples: how many are trained on in one epoch");
      return std::nullopt;
    }
    TrainingByOperations t;
    t.forward_flop = *a.forward;
    t.backward_ratio = a.backward_ratio.value_or(2);
    t.recurrent_steps = a.recurrent.value_or(1);
    t.non_recurrent_flop = a.non_recurrent.value_or(0);
    t.examples = *a.examples;
    t.epochs = a.epochs.value_or(1);
    std::string forward = scientific(t.forward_flop);
    if (t.recurrent_steps != 1) forward += " x " + plain(t.recurrent_steps) + " steps";
    if (t.non_recurrent_flop > 0)
      forward = "(" + forward + " + " + scientific(t.non_recurrent_flop) + ")";
    failed = -1;
    result.add("operations_flop", "by operations", t.flop(), scientific(t.flop()) + " FLOP",
               "forward " + forward + " x " + plain(1 + t.backward_ratio) + " (with backward) x " +
                   plain(t.examples) + " examples x " + plain(t.epochs) + " epochs");
    return t.flop();
  }
  if (!by_steps) {
    failed = -1;
    return std::nullopt;
  }
  if (!above_zero(a.steps)) {
    complain("--steps is missing: how many the whole training takes");
    return std::nullopt;
  }
  std::string from = "given";
  double per_step = a.flop_per_step.value_or(0);
  if (!a.input.traces.empty()) {
    if (a.flop_per_step || !above_zero(a.trace_steps)) {
      complain("traces need --trace-steps, how many steps they hold, and no --flop-per-step");
      return std::nullopt;
    }
    const Reduced reduced = reduce_traces(a.input);
    failed = reduced.exit_code;
    if (!reduced.report || failed != kExitFine) return std::nullopt;
    failed = kExitPartial;
    const auto share = share_of(reduced.report->total, *a.trace_steps, "total");
    if (!share) return std::nullopt;
    per_step = *share;
    from = "executed, of " + plain(*a.trace_steps) + " steps in the traces";
    if (reduced.report->simulated.value_or(false)) from += " (simulated)";
  }
  const TrainingBySteps t{per_step, *a.steps};
  result.add("flop_per_step", "FLOP of a step", per_step, scientific(per_step) + " FLOP", from);
  result.add("operations_flop", "by operations", t.flop(), scientific(t.flop()) + " FLOP",
             "FLOP of a step x " + plain(t.steps) + " steps");
  failed = -1;
  return t.flop();
}

int train(TrainArguments& a, const OutputArguments& output) {
  ProjectionResult result;
  int failed = -1;
  if (!valid_utilization(a.utilization)) return kExitUsage;
  const auto operations = by_operations(a, result, failed);
  if (failed >= 0) return failed;
  std::optional<double> seconds;
  if (!a.time.empty()) {
    seconds = parse_duration(a.time);
    if (!seconds || *seconds <= 0) {
      complain("--time " + printable(cut(a.time, 60)) + ": must be a duration such as 3.5d or 84h");
      return kExitUsage;
    }
    if (!a.peak.any()) {
      complain("--time needs --gpu or --peak");
      return kExitUsage;
    }
  } else if (!operations) {
    complain(
        "give --forward-flop and --examples, --flop-per-step and --steps, traces, or --time "
        "and --gpu (see flopreduce project train --help)");
    return kExitUsage;
  }
  const double devices = a.devices.value_or(1);
  if (a.peak.any()) {
    const auto chosen = a.peak.choose();
    if (!chosen) return kExitUsage;
    if (chosen->size() != 1) {
      complain("--precision: one, for training");
      return kExitUsage;
    }
    const auto& peak = chosen->front();
    const double utilization = a.utilization.value_or(kAssumedOther);
    result.add("peak_flop_per_s", "peak", peak.flop_per_s, scientific(peak.flop_per_s) + " FLOP/s",
               peak.precision + ": " + peak.source);
    result.add("utilization", "utilization", utilization, plain(utilization),
               a.utilization ? "given" : "assumed; 0.30 is usual for large language models");
    if (seconds) {
      const TrainingByTime t{*seconds, devices, peak.flop_per_s, utilization};
      result.add(
          "time_flop", "by device time", t.flop(), scientific(t.flop()) + " FLOP",
          duration_text(*seconds) + " x " + plain(devices) + " devices x peak x utilization");
      if (operations) {
        result.add("factor", "factor between", factor_between(*operations, t.flop()),
                   plain(factor_between(*operations, t.flop())),
                   "larger / smaller of the two methods");
        const double u = *operations / (*seconds * devices * peak.flop_per_s);
        result.add("implied_utilization", "implied utilization", u, plain(u),
                   "by operations / (time x devices x peak)");
        if (u > 1) {
          complain("the operations need " + plain(u) +
                   " times what the devices can do in that time: a number is wrong");
          return kExitUsage;
        }
      }
    } else {
      const double time = training_seconds(*operations, devices, peak.flop_per_s, utilization);
      result.add("projected_s", "projected time", time, duration_text(time),
                 "by operations / (" + plain(devices) + " devices x peak x utilization)");
    }
  }
  return result.write(output, "Training compute");
}

}  // namespace

int run_project_train(int argc, char** argv) {
  CLI::App app{"Training compute by operations (method 1), by device time (method 2), or by both.",
               "flopreduce project train"};
  app.footer(
      "Numbers take k, M, G, T, P, E or an exponent.\n"
      "Example: flopreduce project train --forward-flop 3.1e8 --examples 7.5G \\\n"
      "           --time 3.5d --devices 8 --gpu 'P100 SXM2' --utilization 0.3\n"
      "         flopreduce project train trace.pb --trace-steps 20 --steps 300k --gpu H200 \\\n"
      "           --precision tensor_bf16 --devices 64");
  TrainArguments a;
  OutputArguments output;
  app.add_option("TRACE", a.input.traces,
                 "Traces that --trace-steps training steps were recorded in");
  a.input.add_to(app, false);
  add_number(app, "--forward-flop", a.forward,
             "Forward FLOP of one example; of one time step, with --recurrent-steps");
  add_number(app, "--backward-ratio", a.backward_ratio, "Backward / forward FLOP (2)");
  add_number(app, "--recurrent-steps", a.recurrent, "Time steps of one example, on average (1)");
  add_number(app, "--non-recurrent-flop", a.non_recurrent,
             "Forward FLOP of one example outside its time steps (0)");
  add_number(app, "--examples", a.examples, "Examples of one epoch");
  add_number(app, "--epochs", a.epochs, "Epochs (1)");
  add_number(app, "--flop-per-step", a.flop_per_step, "FLOP of one step, forward and backward");
  add_number(app, "--steps", a.steps, "Steps of the whole training");
  add_number(app, "--trace-steps", a.trace_steps, "Steps that the traces hold");
  app.add_option("--time", a.time, "How long the training took: 3.5d, 84h, 30min, 12s");
  add_number(app, "--devices", a.devices, "Devices (1)");
  a.peak.add_to(app);
  add_number(app, "--utilization", a.utilization, "Share of peak that is reached (0.4)");
  output.add_to(app, {"text", "json"});
  if (const int code = parse(app, argc, argv); code >= 0) return code;
  if (const int code = a.input.finish(); code >= 0) return code;
  if (const int code = output.finish(a.input.files()); code >= 0) return code;
  return train(a, output);
}

}  // namespace flopinj::reduce
