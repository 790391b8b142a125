// flopreduce project train | infer: what a whole training run or an inference takes, worked out
// from numbers or from what a recording measured.
//
// The two methods: J. Sevilla and others, "Estimating Training Compute of Deep Learning Models"
// (2022). What is assumed of utilization where nothing is measured, 0.4, and 0.3 for large language
// models, is theirs (method 2).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "commands/arguments/command.h"
#include "commands/result.h"
#include "commands/run.h"
#include "peaks/peaks.h"
#include "support/si_number.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

using Number = std::optional<double>;

// "8.1e21", four significant digits.
std::string scientific(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.3e", value);
  std::string mantissa = text.data();
  const size_t e = mantissa.find('e');
  const int exponent = std::atoi(mantissa.c_str() + e + 1);
  mantissa.erase(std::max<size_t>(1, mantissa.find_last_not_of("0.", e - 1) + 1));
  return mantissa + "e" + std::to_string(exponent);
}

// "0.3", six significant digits; from a million on scientific.
std::string plain(double value) {
  std::array<char, 40> text{};
  if (std::fabs(value) >= 1e6) return scientific(value);
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

// "3.5 days", "1.77583 ms".
std::string duration_text(double seconds) {
  struct TimeUnit {
    double seconds;
    const char* name;
  };
  constexpr TimeUnit kUnits[] = {{86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}};
  for (const TimeUnit& unit : kUnits)
    if (seconds >= 2 * unit.seconds || (unit.seconds <= 1 && seconds >= unit.seconds))
      return plain(seconds / unit.seconds) + " " + unit.name;
  return plain(seconds * 1e6) + " us";
}

// Seconds of 3.5d, 84h, 30min, 12s, 5ms or a plain number of seconds.
Number parse_duration(std::string_view text) {
  constexpr std::pair<std::string_view, double> kSuffixes[] = {
      {"min", 60}, {"ms", 1e-3}, {"d", 86400}, {"h", 3600}, {"s", 1}};
  for (const auto& [suffix, seconds] : kSuffixes) {
    if (!text.ends_with(suffix)) continue;
    const auto value = parse_si(text.substr(0, text.size() - suffix.size()));
    return value ? Number(*value * seconds) : std::nullopt;
  }
  return parse_si(text);
}

// An option whose value is a number with an SI prefix: --examples 1.2M.
void add_number(manual::CommandLine& app, const char* name, Number& value, const char* help,
                bool may_be_zero = false) {
  app.add_option_function<std::string>(
         name,
         [name, &value, may_be_zero](const std::string& text) {
           value = parse_si(text);
           const std::string given = std::string(name) + " " + printable(text);
           if (!value) throw CLI::ValidationError(given + ": must be a number such as 1.2M or 3e8");
           if (*value == 0 && !may_be_zero) throw CLI::ValidationError(given + ": must be above 0");
         },
         help)
      ->type_name("NUMBER");
}

void refuse_without_effect(const CLI::App& app, std::initializer_list<const char*> options,
                           const std::string& why) {
  for (const char* option : options)
    if (app.count(option) > 0) throw Failure(std::string(option) + " has no effect here: " + why);
}

// Numbers that are too large or too small were given where a figure is no number above 0.
double possible(const std::string& name, double value) {
  if (std::isfinite(value) && value > 0) return value;
  throw Failure(name + " would be " + (value > 0 ? "beyond any number" : "0") +
                ": a number that was given is too large or too small");
}

void check_utilization(const Number& u) {
  if (u && (*u <= 0 || *u > 1))
    throw Failure("--utilization must be above 0 and at most 1: a share, not percent");
}

// Whose peak: of a GPU in the table, or given.
struct PeakArguments {
  std::string gpu;
  std::vector<std::string> precisions;
  Number given;

  struct Choice {
    std::string precision;
    double flop_per_s = 0;
    std::string source;
  };

  void add_to(manual::CommandLine& app) {
    std::vector<std::string> names;
    for (const Gpu* known : search_gpus("")) names.emplace_back(known->name);
    app.add_option("--gpu", gpu, "A GPU of `flopreduce peaks`, or a part of its name")
        ->type_name("GPU")
        ->check(manual::such_as(names));
    app.add_option("--precision", precisions, "Whose peak, such as fp32 or tensor_bf16 (fp32)")
        ->type_name("PRECISION")
        ->check(manual::such_as({kPrecisionNames.begin(), kPrecisionNames.end()}))
        ->delimiter(',');
    add_number(app, "--peak", given, "Peak FLOP/s of one device, instead of --gpu");
  }

  bool any() const { return given || !gpu.empty(); }

  // In the convention of `fma`.
  std::vector<Choice> choose(int fma) const {
    if (given && !gpu.empty()) throw Failure("give --gpu or --peak, not both");
    if (given && !precisions.empty())
      throw Failure("--precision has no effect here: --peak is the peak itself; give --gpu");
    const std::string convention = fma == 1 ? ", a multiply-add as one" : "";
    if (given) return {{"given", in_convention(*given, fma), "--peak" + convention}};
    std::string error;
    const Gpu* row = choose_gpu(gpu, error);
    if (row == nullptr) throw Failure(error);
    const std::string name(row->name);
    std::vector<Choice> out;
    for (const auto& precision :
         precisions.empty() ? std::vector<std::string>{"fp32"} : precisions) {
      const auto peak = peak_of(*row, whole_precision_name(precision));
      if (!peak)
        throw Failure(name + " has no peak for '" + printable(precision) +
                      "'; see flopreduce peaks '" + name + "'");
      out.push_back({precision, in_convention(peak->per_second, fma),
                     name + ", " + peak->source + convention});
    }
    return out;
  }
};

// What a projection of training may say, in the order of its JSON.
struct Projected {
  const char* key;
  const char* name;
  std::string_view unit;
  const char* about;
};
constexpr Projected kFigures[] = {
    {"flop_per_step", "FLOP of a step", "FLOP", "given, or executed"},
    {"gpu_step_s", "GPU time of a step", "s",
     "of traces: sum of kernels of a step, mean of the devices"},
    {"wall_step_s", "wall time of a step", "s", "of traces that say how long they recorded"},
    {"devices", "devices", "", "given, or those of the traces that had launches"},
    {"operations_flop", "by operations", "FLOP", "method 1: by operations"},
    {"peak_flop_per_s", "peak", "FLOP/s",
     "of one device: of a GPU, given, or of the precisions that ran in the traces"},
    {"utilization", "utilization", "", "given, measured in the traces, or assumed"},
    {"time_flop", "by device time", "FLOP", "method 2: time x devices x peak x utilization"},
    {"factor", "factor between", "", "larger / smaller of the two methods"},
    {"implied_utilization", "implied utilization", "", "operations_flop / (time x devices x peak)"},
    {"projected_s", "projected time", "s",
     "from the traces' time of a step, or operations_flop / (devices x peak x utilization)"}};

// Those that were worked out, each with what it comes from, for people and for programs.
class Projection {
 public:
  // The value, which must be a number above 0.
  double add(std::string_view key, double value, std::string from) {
    const Projected& figure = *std::ranges::find(kFigures, key, &Projected::key);
    rows_.push_back({&figure, value, std::move(from)});
    return possible(figure.name, value);
  }

  int write(const OutputArguments& output) const {
    Result result;
    result.sections = {{"Training compute", {}, std::nullopt, {}}};
    if (output.format == "markdown")
      result.sections[0].table = table(true);
    else
      result.sections[0].above = lines();
    result.tables = {table(false)};
    return write_result(result, output);
  }

 private:
  struct Row {
    const Projected* figure;
    double value;
    std::string from;

    std::string shown() const {
      if (figure->unit.empty()) return plain(value);
      return figure->unit == "s" ? duration_text(value)
                                 : scientific(value) + " " + std::string(figure->unit);
    }
  };

  // What a figure comes from is a sentence, and reads from the left.
  std::vector<Line> lines() const {
    size_t name_width = 0, value_width = 0;
    for (const Row& row : rows_) {
      name_width = std::max(name_width, std::string_view(row.figure->name).size());
      value_width = std::max(value_width, row.shown().size());
    }
    std::vector<Line> lines;
    for (const Row& row : rows_) {
      std::string name = row.figure->name, value = row.shown();
      name.resize(name_width + 2, ' ');
      value.insert(0, value_width - value.size(), ' ');
      lines.push_back(Line("  " + name + value).then("  " + row.from, Tone::kDim));
    }
    return lines;
  }

  Table table(bool people) const {
    Table table{"projection",
                {{"figure", "figure"}, {"value", "value", Kind::kRatio}, {"from", "from"}}};
    for (const Row& row : rows_)
      table.rows.push_back({people ? row.figure->name : row.figure->key,
                            people ? Cell(row.shown()) : Cell(Figure::exact(row.value)), row.from});
    return table;
  }

  std::vector<Row> rows_;
};

// What a recording of some steps says of one.
struct MeasuredSteps {
  double flop = 0;       // as executed, all devices together
  std::string of;        // "3 steps in the traces"
  double devices = 1;    // that had launches
  Number gpu_s, wall_s;  // on one device; nothing where not known
  Number peak;           // of one device: FLOP / the least time that the peaks allow for the mix
  std::string peak_of;   // of precisions that ran
  Number utilization;    // over wall time, or over GPU time where that is not known
  bool over_wall = false;
};

MeasuredSteps measure_steps(const Report& report, double steps) {
  const Work& total = report.total;
  if (!total.flop_complete())
    throw Failure("the traces' total has " + std::to_string(total.unmeasured) +
                      " unmeasured launches: no projection from a part",
                  kExitPartial);
  MeasuredSteps m;
  m.flop = static_cast<double>(total.flop) / steps;
  m.of = plain(steps) + " steps in the traces" +
         (report.simulated.value_or(false) ? " (simulated)" : "");
  const auto used = std::ranges::count_if(
      report.devices, [](const auto& device) { return device.ledger.launches > 0; });
  m.devices = static_cast<double>(std::max<ptrdiff_t>(1, used));
  const auto on_one = [&](double ns) { return ns / 1e9 / m.devices / steps; };
  if (total.launches > 0 && total.time.unknown == 0)
    m.gpu_s = on_one(static_cast<double>(total.time.ns));
  if (const auto wall = report.utilization.wall_ns.number()) m.wall_s = on_one(*wall);
  if (total.roof.no_peak == 0 && total.roof.compute_ns > 0 && total.flop > 0) {
    m.peak = static_cast<double>(total.flop) / total.roof.compute_ns * 1e9;
    for (const auto& device : report.utilization.devices)
      m.peak_of += (m.peak_of.empty() ? "" : ", ") + printable(cut(device.name, 100));
  }
  for (const auto& method : report.utilization.methods)
    if (method.name == "executed") {
      m.over_wall = method.wall.known();
      m.utilization = (m.over_wall ? method.wall : method.gpu_time).number();
    }
  return m;
}

struct TrainArguments {
  InputArguments input;
  OutputArguments output;
  PeakArguments peak;
  std::string time;
  Number forward, backward_ratio, recurrent, non_recurrent, examples, epochs;
  Number flop_per_step, steps, trace_steps, devices, utilization;
};

struct NumberOption {
  const char* name;
  Number TrainArguments::*value;
  const char* help;
  bool may_be_zero = false;
};
constexpr NumberOption kNumbers[] = {
    {"--forward-flop", &TrainArguments::forward,
     "Forward FLOP of one example; of one time step, with --recurrent-steps"},
    {"--backward-ratio", &TrainArguments::backward_ratio, "Backward / forward FLOP (2)", true},
    {"--recurrent-steps", &TrainArguments::recurrent, "Time steps of one example, on average (1)"},
    {"--non-recurrent-flop", &TrainArguments::non_recurrent,
     "Forward FLOP of one example outside its time steps (0)", true},
    {"--examples", &TrainArguments::examples, "Examples of one epoch"},
    {"--epochs", &TrainArguments::epochs, "Epochs (1)"},
    {"--flop-per-step", &TrainArguments::flop_per_step, "FLOP of one step, forward and backward"},
    {"--steps", &TrainArguments::steps, "Steps of the whole training"},
    {"--trace-steps", &TrainArguments::trace_steps, "Steps that the traces hold"},
    {"--devices", &TrainArguments::devices, "Devices (1, or as many as the traces have)"},
    {"--utilization", &TrainArguments::utilization,
     "Share of peak that is reached (as the traces measured it, else 0.4)"}};

// Options that are missing, contradict each other or would have no effect.
void check(const TrainArguments& a, const CLI::App& app) {
  const bool traces = !a.input.traces.empty(), by_steps = a.flop_per_step || traces;
  check_utilization(a.utilization);
  if (a.forward && by_steps)
    throw Failure(
        "give the FLOP of an example (--forward-flop), of a step (--flop-per-step) or traces, not "
        "several");
  if (traces && (a.flop_per_step || !a.trace_steps))
    throw Failure("traces need --trace-steps, how many steps they hold, and no --flop-per-step");
  if (a.forward && !a.examples)
    throw Failure("--forward-flop needs --examples: how many are trained on in one epoch");
  if (by_steps && !a.steps) throw Failure("--steps is missing: how many the whole training takes");
  if (!a.forward && !by_steps && a.time.empty())
    throw Failure(
        "give --forward-flop and --examples, --flop-per-step and --steps, traces, or --time and "
        "--gpu (see flopreduce project train --help)");
  if (!a.forward)
    refuse_without_effect(
        app,
        {"--backward-ratio", "--recurrent-steps", "--non-recurrent-flop", "--examples", "--epochs"},
        "it goes with --forward-flop");
  if (!by_steps) refuse_without_effect(app, {"--steps"}, "it goes with --flop-per-step or traces");
  if (!traces)
    refuse_without_effect(app, {"--trace-steps", "--fma", "--phase", "--rules", "--names"},
                          "it goes with traces");
  if (a.peak.gpu.empty()) refuse_without_effect(app, {"--precision"}, "it goes with --gpu");
  if (a.peak.any() || traces) return;
  if (!a.time.empty()) throw Failure("--time needs --gpu or --peak");
  refuse_without_effect(app, {"--devices", "--utilization"},
                        "without --gpu or --peak no time is worked out");
}

// Method 1.
double by_operations(const TrainArguments& a, const std::optional<MeasuredSteps>& m,
                     Projection& out) {
  if (!a.forward) {
    const double step = out.add("flop_per_step", m ? m->flop : *a.flop_per_step,
                                m ? "executed, of " + m->of : "given");
    return out.add("operations_flop", step * *a.steps,
                   "FLOP of a step x " + plain(*a.steps) + " steps");
  }
  const double ratio = a.backward_ratio.value_or(2), steps = a.recurrent.value_or(1);
  const double outside = a.non_recurrent.value_or(0), epochs = a.epochs.value_or(1);
  std::string forward = scientific(*a.forward);
  if (steps != 1) forward += " x " + plain(steps) + " steps";
  if (outside > 0) forward = "(" + forward + " + " + scientific(outside) + ")";
  return out.add("operations_flop",
                 (*a.forward * steps + outside) * (1 + ratio) * *a.examples * epochs,
                 "forward " + forward + " x " + plain(1 + ratio) + " (with backward) x " +
                     plain(*a.examples) + " examples x " + plain(epochs) + " epochs");
}

struct Reached {
  double peak = 0, utilization = 0;
};

// Peak and utilization: as typed, else as measured, else assumed. Nothing where neither is known.
std::optional<Reached> reached(const TrainArguments& a, const std::optional<MeasuredSteps>& m,
                               Projection& out) {
  Reached r;
  if (a.peak.any()) {
    const auto chosen = a.peak.choose(a.input.reduce.fma);
    if (chosen.size() != 1) throw Failure("--precision: one, for training");
    r.peak = out.add("peak_flop_per_s", chosen[0].flop_per_s,
                     chosen[0].precision + ": " + chosen[0].source);
  } else if (m && m->peak && (m->utilization || a.utilization)) {
    r.peak = out.add("peak_flop_per_s", *m->peak, "of the precisions that ran, on " + m->peak_of);
  } else {
    return std::nullopt;
  }
  if (a.utilization)
    r.utilization = out.add("utilization", *a.utilization, "given");
  else if (m && m->utilization)
    r.utilization = out.add("utilization", *m->utilization,
                            m->over_wall ? "measured, over wall time" : "measured, over GPU time");
  else
    r.utilization = out.add("utilization", 0.4, "assumed; 0.30 is usual for large language models");
  return r;
}

// Method 2, and how it compares with method 1.
void by_time(double seconds, double devices, const Reached& r, const Number& operations,
             Projection& out) {
  const double flop =
      out.add("time_flop", seconds * devices * r.peak * r.utilization,
              duration_text(seconds) + " x " + plain(devices) + " devices x peak x utilization");
  if (!operations) return;
  const double u = *operations / (seconds * devices * r.peak);
  if (u > 1)
    throw Failure("the operations need " + plain(u) +
                  " times what the devices can do in that time: a number is wrong");
  out.add("factor", std::max(*operations, flop) / std::min(*operations, flop),
          "larger / smaller of the two methods");
  out.add("implied_utilization", u, "by operations / (time x devices x peak)");
}

// How long it takes: from the time of a step where that was measured and nothing else was typed.
void project_time(const TrainArguments& a, double operations, double devices,
                  const std::optional<MeasuredSteps>& m, const std::optional<Reached>& r,
                  Projection& out) {
  if (m && (m->wall_s || m->gpu_s) && !a.peak.any() && !a.utilization) {
    std::string from = std::string(m->wall_s ? "wall" : "GPU") + " time of a step x steps";
    if (devices != m->devices)
      from += " x " + plain(m->devices) + " / " + plain(devices) + " devices, if all share alike";
    const double step = m->wall_s ? *m->wall_s : *m->gpu_s;
    out.add("projected_s", step * *a.steps * m->devices / devices, from);
  } else if (r) {
    out.add("projected_s", operations / (devices * r->peak * r->utilization),
            "by operations / (" + plain(devices) + " devices x peak x utilization)");
  }
}

int run_train(TrainArguments& a, const CLI::App& app) {
  a.input.finish();
  a.output.finish(a.input.files());
  check(a, app);
  const Number seconds = a.time.empty() ? std::nullopt : parse_duration(a.time);
  if (!a.time.empty() && (!seconds || *seconds <= 0))
    throw Failure("--time " + printable(cut(a.time, 60)) +
                  ": must be a duration such as 3.5d or 84h");
  Projection out;
  std::optional<MeasuredSteps> m;
  if (!a.input.traces.empty()) {
    const Reduced reduced = reduce_traces(a.input);
    if (!reduced.report || reduced.exit_code != kExitFine) return reduced.exit_code;
    m = measure_steps(*reduced.report, *a.trace_steps);
  }
  Number operations;
  if (a.forward || a.flop_per_step || m) operations = by_operations(a, m, out);
  if (m) {
    const std::string of =
        m->of + (m->devices > 1 ? ", mean of " + plain(m->devices) + " devices" : "");
    if (m->gpu_s) out.add("gpu_step_s", *m->gpu_s, "sum of kernels, of " + of);
    if (m->wall_s) out.add("wall_step_s", *m->wall_s, "the recording's, of " + of);
  }
  const auto r = reached(a, m, out);
  if (!r && (seconds || a.utilization))
    throw Failure("the traces tell no utilization: --time and --utilization need --gpu or --peak");
  const double devices = a.devices.value_or(m ? m->devices : 1);
  if (m) out.add("devices", devices, a.devices ? "given" : "in the traces");
  if (seconds)
    by_time(*seconds, devices, *r, operations, out);
  else if (operations)
    project_time(a, *operations, devices, m, r, out);
  return out.write(a.output);
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
  const auto a = std::make_shared<TrainArguments>();
  app.add_option("TRACE", a->input.traces,
                 "Traces that --trace-steps training steps were recorded in");
  a->input.add_to(app, false);
  for (const NumberOption& o : kNumbers)
    add_number(app, o.name, a.get()->*o.value, o.help, o.may_be_zero);
  app.add_option("--time", a->time, "How long the training took: 3.5d, 84h, 30min, 12s")
      ->type_name("DURATION");
  a->peak.add_to(app);
  a->output.add_to(app, result_forms());
  return [a, &app] { return run_train(*a, app); };
}

struct InferArguments {
  OutputArguments output;
  PeakArguments peak;
  Number forward, utilization;
};

int run_infer(InferArguments& a) {
  a.output.finish({});
  check_utilization(a.utilization);
  if (!a.forward) throw Failure("--forward-flop is missing: FLOP of one example");
  if (!a.peak.any()) throw Failure("--gpu or --peak is missing");
  const double flop = *a.forward, u = a.utilization.value_or(1);
  Table people{"inference",
               {{"precision", "precision"},
                {"peak_flop_per_s", "peak", Kind::kRate},
                {"time_s", "time of one"},
                {"examples_per_s", "per second"}}};
  Table programs = people;
  for (Column& column : programs.columns)
    if (column.kind == Kind::kText && &column != programs.columns.data())
      column.kind = Kind::kRatio;
  programs.columns.push_back({"source", "source"});
  std::vector<Line> sources;
  for (const auto& c : a.peak.choose(2)) {
    const double seconds = possible("the time of one example", flop / (c.flop_per_s * u));
    const double per_second = possible("examples per second", 1 / seconds);
    const Figure peak = Figure::exact(c.flop_per_s);
    people.rows.push_back({c.precision, peak, duration_text(seconds), plain(per_second)});
    programs.rows.push_back(
        {c.precision, peak, Figure::exact(seconds), Figure::exact(per_second), c.source});
    sources.emplace_back("  " + c.precision + ": " + c.source, Tone::kDim);
  }
  Result result;
  result.sections = {
      {"Inference of " + scientific(flop) + " FLOP at " + plain(100 * u) + " % of peak",
       {},
       std::move(people),
       std::move(sources)}};
  result.tables = {std::move(programs)};
  return write_result(result, a.output);
}

Action define_infer(manual::CommandLine& app) {
  app.examples = {{"flopreduce project infer --forward-flop 15503M --gpu 'K80 board'",
                   "time of one image of VGG-16 on a K80"}};
  const auto a = std::make_shared<InferArguments>();
  add_number(app, "--forward-flop", a->forward, "FLOP of one example");
  add_number(app, "--utilization", a->utilization, "Share of peak that is reached (1)");
  a->peak.add_to(app);
  a->output.add_to(app, result_forms());
  return [a] { return run_infer(*a); };
}

constexpr Command kTrain = {
    "train", "training compute, by operations, by device time, or both",
    "Training compute by operations (method 1), by device time (method 2), or by both.",
    define_train};
constexpr Command kInfer = {"infer", "time and throughput of one forward pass",
                            "Time and throughput of one forward pass at a share of peak.",
                            define_infer};
constexpr const Command* kWords[] = {&kTrain, &kInfer};

}  // namespace

const Command kProject = {"project", "compute of a whole training run, time of an inference",
                          "What a whole training run or an inference takes.", nullptr, kWords};

}  // namespace flopinj::reduce
