// flopreduce project train: training compute by operations, by device time, or both.
#include <memory>

#include "commands/arguments/command.h"
#include "commands/measured_steps.h"
#include "commands/projection_arguments.h"
#include "commands/result.h"
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
  std::optional<double> seconds;  // of `time`
};

int wrong(const std::string& what) {
  complain(what);
  return kExitUsage;
}

// -1, or the exit code where options are missing, contradict each other or would have no effect.
int check(TrainArguments& a, const CLI::App& app) {
  const bool traces = !a.input.traces.empty();
  if (!valid_utilization(a.utilization)) return kExitUsage;
  if (a.forward && (a.flop_per_step || traces))
    return wrong(
        "give the FLOP of an example (--forward-flop), of a step (--flop-per-step) or traces, not "
        "several");
  if (traces && (a.flop_per_step || !a.trace_steps))
    return wrong("traces need --trace-steps, how many steps they hold, and no --flop-per-step");
  if (a.forward && !a.examples)
    return wrong("--forward-flop needs --examples: how many are trained on in one epoch");
  if ((a.flop_per_step || traces) && !a.steps)
    return wrong("--steps is missing: how many the whole training takes");
  const bool by_operations = a.forward || a.flop_per_step || traces;
  if (!by_operations && a.time.empty())
    return wrong(
        "give --forward-flop and --examples, --flop-per-step and --steps, traces, or --time and "
        "--gpu (see flopreduce project train --help)");
  if (!a.forward && !without_effect(app,
                                    {"--backward-ratio", "--recurrent-steps",
                                     "--non-recurrent-flop", "--examples", "--epochs"},
                                    "it goes with --forward-flop"))
    return kExitUsage;
  if (!a.flop_per_step && !traces &&
      !without_effect(app, {"--steps"}, "it goes with --flop-per-step or traces"))
    return kExitUsage;
  if (!traces && !without_effect(app, {"--trace-steps", "--fma", "--phase", "--rules", "--names"},
                                 "it goes with traces"))
    return kExitUsage;
  if (a.peak.gpu.empty() && !without_effect(app, {"--precision"}, "it goes with --gpu"))
    return kExitUsage;
  if (a.peak.any() || traces) return -1;
  if (!a.time.empty()) return wrong("--time needs --gpu or --peak");
  return without_effect(app, {"--devices", "--utilization"},
                        "without --gpu or --peak no time is "
                        "worked out")
             ? -1
             : kExitUsage;
}

// -1, or the exit code of what was said.
int read_time(TrainArguments& a) {
  if (a.time.empty()) return -1;
  a.seconds = parse_duration(a.time);
  if (a.seconds && *a.seconds > 0) return -1;
  return wrong("--time " + printable(cut(a.time, 60)) + ": must be a duration such as 3.5d or 84h");
}

// Method 1. Nothing where a figure is impossible, which was said.
std::optional<double> of_examples(const TrainArguments& a, ProjectionResult& result) {
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
  if (!result.add("operations_flop", "by operations", t.flop(), scientific(t.flop()) + " FLOP",
                  "forward " + forward + " x " + plain(1 + t.backward_ratio) +
                      " (with backward) x " + plain(t.examples) + " examples x " + plain(t.epochs) +
                      " epochs"))
    return std::nullopt;
  return t.flop();
}

std::optional<double> of_steps(const TrainArguments& a,
                               const std::optional<MeasuredSteps>& measured,
                               ProjectionResult& result) {
  const TrainingBySteps t{measured ? measured->flop : *a.flop_per_step, *a.steps};
  if (!result.add("flop_per_step", "FLOP of a step", t.flop_per_step,
                  scientific(t.flop_per_step) + " FLOP",
                  measured ? "executed, of " + measured->steps_text : "given") ||
      !result.add("operations_flop", "by operations", t.flop(), scientific(t.flop()) + " FLOP",
                  "FLOP of a step x " + plain(t.steps) + " steps"))
    return std::nullopt;
  return t.flop();
}

// What a step took where it was measured.
bool add_times(const MeasuredSteps& m, ProjectionResult& result) {
  const std::string devices = m.devices > 1 ? ", mean of " + plain(m.devices) + " devices" : "";
  if (m.gpu_s && !result.add("gpu_step_s", "GPU time of a step", *m.gpu_s, duration_text(*m.gpu_s),
                             "sum of kernels, of " + m.steps_text + devices))
    return false;
  return !m.wall_s ||
         result.add("wall_step_s", "wall time of a step", *m.wall_s, duration_text(*m.wall_s),
                    "the recording's, of " + m.steps_text + devices);
}

struct Reached {
  double peak = 0, utilization = 0;
};

// Peak and utilization: as typed, else as measured, else assumed. Nothing where neither is known,
// or a figure is impossible: then `failed`.
std::optional<Reached> reached(const TrainArguments& a, const std::optional<MeasuredSteps>& m,
                               ProjectionResult& result, bool& failed) {
  failed = true;
  Reached r;
  std::string from;
  if (a.peak.any()) {
    const auto chosen = a.peak.choose(a.input.reduce.fma);
    if (!chosen) return std::nullopt;
    if (chosen->size() != 1) {
      complain("--precision: one, for training");
      return std::nullopt;
    }
    r.peak = chosen->front().flop_per_s;
    from = chosen->front().precision + ": " + chosen->front().source;
  } else if (m && m->peak && (m->utilization || a.utilization)) {
    r.peak = *m->peak;
    from = m->peak_text;
  } else {
    failed = false;
    return std::nullopt;
  }
  const bool use_measured = !a.utilization && m && m->utilization;
  r.utilization = use_measured ? *m->utilization : a.utilization.value_or(kAssumedOther);
  if (!result.add("peak_flop_per_s", "peak", r.peak, scientific(r.peak) + " FLOP/s", from) ||
      !result.add("utilization", "utilization", r.utilization, plain(r.utilization),
                  use_measured    ? m->utilization_text
                  : a.utilization ? "given"
                                  : "assumed; 0.30 is usual for large language models"))
    return std::nullopt;
  return r;
}

// Method 2, and how it compares with method 1.
int by_time(const TrainArguments& a, const std::optional<double>& operations, double devices,
            const Reached& r, ProjectionResult& result) {
  const TrainingByTime t{*a.seconds, devices, r.peak, r.utilization};
  if (!result.add(
          "time_flop", "by device time", t.flop(), scientific(t.flop()) + " FLOP",
          duration_text(*a.seconds) + " x " + plain(devices) + " devices x peak x utilization"))
    return kExitUsage;
  if (!operations) return -1;
  const double factor = factor_between(*operations, t.flop());
  const double u = *operations / (*a.seconds * devices * r.peak);
  if (u > 1)
    return wrong("the operations need " + plain(u) +
                 " times what the devices can do in that time: a number is wrong");
  return result.add("factor", "factor between", factor, plain(factor),
                    "larger / smaller of the two methods") &&
                 result.add("implied_utilization", "implied utilization", u, plain(u),
                            "by operations / (time x devices x peak)")
             ? -1
             : kExitUsage;
}

// How long it takes: from the time of a step where that was measured and nothing else was typed.
int projected(const TrainArguments& a, double operations, double devices,
              const std::optional<MeasuredSteps>& m, const std::optional<Reached>& r,
              ProjectionResult& result) {
  const bool typed = a.peak.any() || a.utilization;
  std::optional<double> seconds;
  std::string from;
  if (m && !typed && m->step_s()) {
    seconds = *m->step_s() * *a.steps * m->devices / devices;
    from = std::string(m->wall_s ? "wall" : "GPU") + " time of a step x steps";
    if (devices != m->devices)
      from += " x " + plain(m->devices) + " / " + plain(devices) + " devices, if all share alike";
  } else if (r) {
    seconds = training_seconds(operations, devices, r->peak, r->utilization);
    from = "by operations / (" + plain(devices) + " devices x peak x utilization)";
  }
  if (!seconds) return -1;
  return result.add("projected_s", "projected time", *seconds, duration_text(*seconds), from)
             ? -1
             : kExitUsage;
}

int train(TrainArguments& a, const OutputArguments& output) {
  ProjectionResult result;
  std::optional<MeasuredSteps> measured;
  if (!a.input.traces.empty()) {
    const Reduced reduced = reduce_traces(a.input);
    if (!reduced.report || reduced.exit_code != kExitFine) return reduced.exit_code;
    measured = measure_steps(*reduced.report, *a.trace_steps);
    if (!measured) return kExitPartial;
  }
  std::optional<double> operations;
  if (a.forward || a.flop_per_step || measured) {
    operations = a.forward ? of_examples(a, result) : of_steps(a, measured, result);
    if (!operations) return kExitUsage;
  }
  if (measured && !add_times(*measured, result)) return kExitUsage;
  bool failed = false;
  const auto r = reached(a, measured, result, failed);
  if (failed && !r) return kExitUsage;
  if (!r && (a.seconds || a.utilization))
    return wrong("the traces tell no utilization: --time and --utilization need --gpu or --peak");
  const double devices = a.devices.value_or(measured ? measured->devices : 1);
  if (measured && !result.add("devices", "devices", devices, plain(devices),
                              a.devices ? "given" : "in the traces"))
    return kExitUsage;
  const int code = a.seconds    ? by_time(a, operations, devices, *r, result)
                   : operations ? projected(a, *operations, devices, measured, r, result)
                                : -1;
  return code >= 0 ? code : result.write(output, "Training compute");
}

Action define_train(manual::CommandLine& app) {
  app.notes =
      "Numbers take k, M, G, T, P, E or an exponent. Traces tell, beside the FLOP of a step, its "
      "GPU and wall time, the devices and the utilization reached; --devices, --utilization, --gpu "
      "and --peak override that.";
  app.examples = {{"flopreduce project train --forward-flop 3.1e8 --examples 7.5G \\\n"
                   "    --time 3.5d --devices 8 --gpu 'P100 SXM2' --utilization 0.3",
                   "both methods, and how far they are apart"},
                  {"flopreduce project train trace.pb --trace-steps 20 --steps 300k --devices 64",
                   "from 20 measured steps to a whole training"}};
  struct Arguments {
    TrainArguments train;
    OutputArguments output;
  };
  const auto all = std::make_shared<Arguments>();
  TrainArguments& a = all->train;
  app.add_option("TRACE", a.input.traces,
                 "Traces that --trace-steps training steps were recorded in");
  a.input.add_to(app, false);
  add_number(app, "--forward-flop", a.forward,
             "Forward FLOP of one example; of one time step, with --recurrent-steps");
  add_number(app, "--backward-ratio", a.backward_ratio, "Backward / forward FLOP (2)",
             Least::kZero);
  add_number(app, "--recurrent-steps", a.recurrent, "Time steps of one example, on average (1)");
  add_number(app, "--non-recurrent-flop", a.non_recurrent,
             "Forward FLOP of one example outside its time steps (0)", Least::kZero);
  add_number(app, "--examples", a.examples, "Examples of one epoch");
  add_number(app, "--epochs", a.epochs, "Epochs (1)");
  add_number(app, "--flop-per-step", a.flop_per_step, "FLOP of one step, forward and backward");
  add_number(app, "--steps", a.steps, "Steps of the whole training");
  add_number(app, "--trace-steps", a.trace_steps, "Steps that the traces hold");
  app.add_option("--time", a.time, "How long the training took: 3.5d, 84h, 30min, 12s")
      ->type_name("DURATION");
  add_number(app, "--devices", a.devices, "Devices (1, or as many as the traces have)");
  a.peak.add_to(app);
  add_number(app, "--utilization", a.utilization,
             "Share of peak that is reached (as the traces measured it, else 0.4)");
  all->output.add_to(app, result_forms());
  return [all, &app] {
    TrainArguments& given = all->train;
    given.input.finish();
    all->output.finish(given.input.files());
    if (const int code = check(given, app); code >= 0) return code;
    if (const int code = read_time(given); code >= 0) return code;
    return train(given, all->output);
  };
}

}  // namespace

const Command kTrain = {
    "train", "training compute, by operations, by device time, or both",
    "Training compute by operations (method 1), by device time (method 2), or by both.",
    define_train};

}  // namespace flopinj::reduce
