// flopreduce project train | infer: what a whole training run or an inference takes, worked out
// from numbers or from what a recording measured.
//
// The two methods: J. Sevilla and others, "Estimating Training Compute of Deep Learning Models"
// (2022). What is assumed of utilization where nothing is measured, 0.4, and 0.3 for large language
// models, is theirs (method 2).
#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <vector>

#include "commands/forms.h"
#include "peaks/peaks.h"
#include "support/program_name.h"
#include "support/si_number.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

using Number = std::optional<double>;

// "8.1e21", four significant digits.
std::string scientific(double value) {
  std::string mantissa = printed("%.3e", value);
  const size_t e = mantissa.find('e');
  const int exponent = std::atoi(mantissa.c_str() + e + 1);
  mantissa.erase(std::max<size_t>(1, mantissa.find_last_not_of("0.", e - 1) + 1));
  return mantissa + "e" + std::to_string(exponent);
}

// "0.3", six significant digits; from a million on scientific.
std::string plain(double value) {
  return std::fabs(value) >= 1e6 ? scientific(value) : printed("%.6g", value);
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

std::string shown(double value, std::string_view unit) {
  if (unit.empty()) return plain(value);
  return unit == "s" ? duration_text(value) : scientific(value) + " " + std::string(unit);
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

[[noreturn]] void refuse(const std::string& option, const std::string& goes_with) {
  throw Failure(option + " has no effect here: it goes with " + goes_with);
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
    app.add_option("--gpu", gpu, "A GPU of `" + typed("peaks") + "`, or a part of its name")
        ->type_name("GPU")
        ->check(manual::such_as([] {
          std::vector<std::string> names;
          for (const Gpu* known : search_gpus("")) names.emplace_back(known->name);
          return names;
        }));
    app.add_option("--precision", precisions, "Whose peak, such as fp32 or tensor_bf16 (fp32)")
        ->type_name("PRECISION")
        ->check(manual::such_as([] {
          return std::vector<std::string>(kPrecisionNames.begin(), kPrecisionNames.end());
        }))
        ->delimiter(',');
    add_number(app, "--peak", given, "Peak FLOP/s of one device, instead of --gpu");
  }

  // In the convention of `fma`; none where there is neither.
  std::vector<Choice> choose(int fma) const {
    if (given && !gpu.empty()) throw Failure("give --gpu or --peak, not both");
    if (given && *given >= 1)  // a prefix was forgotten
      if (const std::string why = no_peak(printed("%.10g", *given), *given, false); !why.empty())
        throw Failure("--peak: " + why);
    if (gpu.empty() && !precisions.empty()) refuse("--precision", "--gpu");
    const std::string convention = fma == 1 ? ", a multiply-add as one" : "";
    if (given) return {{"given", in_convention(*given, fma), "--peak" + convention}};
    if (gpu.empty()) return {};
    std::string error;
    const Gpu* row = choose_gpu(gpu, error);
    if (row == nullptr) throw Failure(error);
    const std::string name(row->name);
    std::vector<Choice> out;
    for (const auto& precision :
         precisions.empty() ? std::vector<std::string>{"fp32"} : precisions) {
      const auto peak = peak_of(*row, whole_precision_name(precision));
      if (!peak)
        throw Failure(name + " has no peak for '" + printable(precision) + "'; see " +
                      typed("peaks") + " '" + name + "'");
      out.push_back({precision, in_convention(peak->per_second, fma),
                     name + ", " + peak->source + convention});
    }
    return out;
  }
};

// Numbers of the command line, in the order of kNumbers.
enum Option : uint8_t {
  kForwardFlop,
  kBackwardRatio,
  kRecurrentSteps,
  kNonRecurrentFlop,
  kExamples,
  kEpochs,
  kFlopPerStep,
  kSteps,
  kTraceSteps,
  kDevices,
  kUtilizationGiven,
  kTime,  // a duration, which is no number of kNumbers
  kOptions
};
struct NumberOption {
  const char* name;
  const char* help;
  const char* goes_with;
  Number preset = std::nullopt;
  Written written = Written::kCount;
};
constexpr const char *kWithExamples = "--forward-flop and --examples",
                     *kWithPeak = "--gpu or --peak";
constexpr std::array<NumberOption, kTime> kNumbers{
    {{"--forward-flop", "Forward FLOP of one example; of one time step, with --recurrent-steps",
      "--examples, and without --flop-per-step and traces"},
     {"--backward-ratio", "Backward / forward FLOP (2)", kWithExamples, 2, Written::kCountOrZero},
     {"--recurrent-steps", "Time steps of one example, on average (1)", kWithExamples, 1},
     {"--non-recurrent-flop", "Forward FLOP of one example outside its time steps (0)",
      kWithExamples, 0, Written::kCountOrZero},
     {"--examples", "Examples of one epoch", "--forward-flop"},
     {"--epochs", "Epochs (1)", kWithExamples, 1},
     {"--flop-per-step", "FLOP of one step, forward and backward", "--steps, and without traces"},
     {"--steps", "Steps of the whole training", "--flop-per-step or traces"},
     {"--trace-steps", "Steps that the traces hold", "traces"},
     {"--devices", "Devices (1, or as many as the traces have)", kWithPeak, 1},
     {"--utilization", "Share of peak that is reached (as the traces measured it, else 0.4)",
      kWithPeak, std::nullopt, Written::kShare}}};

// What a projection of training may say, in order.
enum Projected : uint8_t {
  kStepFlop,
  kOperationsFlop,
  kGpuStep,
  kWallStep,
  kPeak,
  kUtilizationUsed,
  kDevicesUsed,
  kTimeFlop,
  kFactor,
  kImpliedUtilization,
  kProjectedTime,
  kProjectedFigures
};
struct ProjectedFigure {
  const char* key;
  const char* name;
  const char* unit;
};
constexpr std::array<ProjectedFigure, kProjectedFigures> kFigures{
    {{"flop_per_step", "FLOP of a step", "FLOP"},
     {"operations_flop", "by operations", "FLOP"},
     {"gpu_step_s", "GPU time of a step", "s"},
     {"wall_step_s", "wall time of a step", "s"},
     {"peak_flop_per_s", "peak", "FLOP/s"},
     {"utilization", "utilization", ""},
     {"devices", "devices", ""},
     {"time_flop", "by device time", "FLOP"},
     {"factor", "factor between", ""},
     {"implied_utilization", "implied utilization", ""},
     {"projected_s", "projected time", "s"}}};

// Nothing where one of them is not known.
Number product(std::initializer_list<Number> factors) {
  double value = 1;
  for (const Number& factor : factors) {
    if (!factor) return std::nullopt;
    value *= *factor;
  }
  return value;
}
Number quotient_of(Number a, Number b) { return a && b ? Number(*a / *b) : std::nullopt; }

// What a recording of some steps says of one.
struct Measured {
  double steps = 0, skipped = 0, devices = 1;  // devices: that launched
  bool simulated = false;
  Number flop, gpu_s, wall_s, peak, utilization;
  const char* over = "";     // the time that the utilization is of
  std::string device_names;  // whose peak it is

  std::string words() const {
    return plain(steps) + " steps in the traces" +
           (skipped == 1  ? ", without the first one"
            : skipped > 0 ? ", without the first " + plain(skipped)
                          : "") +
           (simulated ? " (simulated)" : "");
  }
  std::string mean() const {
    return words() + (devices > 1 ? ", mean of " + plain(devices) + " devices" : "");
  }
};

// What is known: what was given and measured, and the figures that were worked out. It notes which
// options are asked for: one that never is has no effect.
struct Known {
  std::array<Number, kOptions> given;
  std::optional<PeakArguments::Choice> given_peak;
  std::optional<Measured> traces;
  std::array<Number, kProjectedFigures> figures;
  mutable std::bitset<kOptions> asked;

  bool is_given(Option option) const { return given[option].has_value(); }
  Number operator[](Option option) const {
    asked.set(option);
    return is_given(option) || option == kTime ? given[option] : kNumbers[option].preset;
  }
  double at(Option option) const { return *(*this)[option]; }  // of one that is known

  double devices() const { return traces && !is_given(kDevices) ? traces->devices : at(kDevices); }
  Number forward() const {
    const Number flop = (*this)[kForwardFlop];
    return flop ? Number(*flop * at(kRecurrentSteps) + at(kNonRecurrentFlop)) : std::nullopt;
  }
  double passes() const { return 1 + at(kBackwardRatio); }
  Number most_flop() const { return product({(*this)[kTime], devices(), figures[kPeak]}); }
  // A peak, a time or a utilization was given: the time of the recorded steps is not projected.
  bool typed() const { return given_peak || is_given(kTime) || is_given(kUtilizationGiven); }

  std::string forward_words() const {
    std::string words = scientific(at(kForwardFlop));
    if (at(kRecurrentSteps) != 1) words += " x " + plain(at(kRecurrentSteps)) + " steps";
    return at(kNonRecurrentFlop) > 0 ? "(" + words + " + " + scientific(at(kNonRecurrentFlop)) + ")"
                                     : words;
  }
  // Behind "time of a step x steps".
  std::string shared_words() const {
    if (devices() == traces->devices) return "";
    return " x " + plain(traces->devices) + " / " + plain(devices()) +
           " devices, if all share alike";
  }
  void refuse_what_has_no_effect() const {
    for (size_t i = 0; i < kOptions; ++i)
      if (given[i] && !asked[i])
        i == kTime ? refuse("--time", kWithPeak) : refuse(kNumbers[i].name, kNumbers[i].goes_with);
  }
};

// Of the steps that all devices of the traces shared.
Number time_of_all_steps(const Known& k, Projected step) {
  if (k.typed() || !k.traces) return std::nullopt;
  return quotient_of(product({k.figures[step], k[kSteps], k.traces->devices}), k.devices());
}

// A way to a figure, open where all that it takes is known. Of several ways to a figure the first
// open one counts.
struct Way {
  Projected figure;
  Number (*value)(const Known&);
  std::string (*from)(const Known&);  // in words
};
using K = const Known&;
constexpr Way kWays[] = {
    {kStepFlop, [](K k) { return k.traces ? k.traces->flop : std::nullopt; },
     [](K k) { return "executed, of " + k.traces->words(); }},
    {kStepFlop, [](K k) { return k[kFlopPerStep]; }, [](K) { return std::string("given"); }},
    // Method 1.
    {kOperationsFlop,
     [](K k) {
       return product({k.figures[kStepFlop], k[kSteps]});
     },
     [](K k) { return "FLOP of a step x " + plain(k.at(kSteps)) + " steps"; }},
    {kOperationsFlop,
     [](K k) {
       return k.figures[kStepFlop] ? std::nullopt
                                   : product({k.forward(), k.passes(), k[kExamples], k[kEpochs]});
     },
     [](K k) {
       return "forward " + k.forward_words() + " x " + plain(k.passes()) + " (with backward) x " +
              plain(k.at(kExamples)) + " examples x " + plain(k.at(kEpochs)) + " epochs";
     }},
    {kGpuStep, [](K k) { return k.traces ? k.traces->gpu_s : std::nullopt; },
     [](K k) { return "sum of kernels, of " + k.traces->mean(); }},
    {kWallStep, [](K k) { return k.traces ? k.traces->wall_s : std::nullopt; },
     [](K k) { return "the recording's, of " + k.traces->mean(); }},
    {kPeak, [](K k) { return k.given_peak ? Number(k.given_peak->flop_per_s) : std::nullopt; },
     [](K k) { return k.given_peak->precision + ": " + k.given_peak->source; }},
    {kPeak, [](K k) { return k.traces ? k.traces->peak : std::nullopt; },
     [](K k) { return "of the precisions that ran, on " + k.traces->device_names; }},
    {kUtilizationUsed, [](K k) { return k.figures[kPeak] ? k[kUtilizationGiven] : std::nullopt; },
     [](K) { return std::string("given"); }},
    {kUtilizationUsed,
     [](K k) { return k.figures[kPeak] && k.traces ? k.traces->utilization : std::nullopt; },
     [](K k) { return std::string("measured, over ") + k.traces->over + " time"; }},
    {kUtilizationUsed, [](K k) { return k.figures[kPeak] ? Number(0.4) : std::nullopt; },
     [](K) { return std::string("assumed; 0.30 is usual for large language models"); }},
    {kDevicesUsed, [](K k) { return k.traces ? Number(k.devices()) : std::nullopt; },
     [](K k) { return std::string(k.is_given(kDevices) ? "given" : "in the traces"); }},
    // Method 2.
    {kTimeFlop,
     [](K k) {
       return product({k.most_flop(), k.figures[kUtilizationUsed]});
     },
     [](K k) {
       return duration_text(k.at(kTime)) + " x " + plain(k.devices()) +
              " devices x peak x utilization";
     }},
    {kFactor,
     [](K k) {
       const Number factor = quotient_of(k.figures[kOperationsFlop], k.figures[kTimeFlop]);
       return factor ? Number(std::max(*factor, 1 / *factor)) : std::nullopt;
     },
     [](K) { return std::string("larger / smaller of the two methods"); }},
    {kImpliedUtilization,
     [](K k) { return quotient_of(k.figures[kOperationsFlop], k.most_flop()); },
     [](K) { return std::string("by operations / (time x devices x peak)"); }},
    // From the time of a step where that was measured.
    {kProjectedTime, [](K k) { return time_of_all_steps(k, kWallStep); },
     [](K k) { return "wall time of a step x steps" + k.shared_words(); }},
    {kProjectedTime, [](K k) { return time_of_all_steps(k, kGpuStep); },
     [](K k) { return "GPU time of a step x steps" + k.shared_words(); }},
    {kProjectedTime,
     [](K k) {
       return k.is_given(kTime)
                  ? std::nullopt
                  : quotient_of(k.figures[kOperationsFlop], product({k.devices(), k.figures[kPeak],
                                                                     k.figures[kUtilizationUsed]}));
     },
     [](K k) {
       return "by operations / (" + plain(k.devices()) + " devices x peak x utilization)";
     }}};

Measured measured_steps(const Report& report, double skipped, const Known& k) {
  Measured m;
  m.skipped = skipped;
  m.steps = k.at(kTraceSteps) - skipped;
  if (m.steps <= 0) throw Failure("--skip-steps leaves none of so many --trace-steps");
  const Work& total = report.total;
  if (!total.flop_complete())
    throw Failure("the traces' total has " + std::to_string(total.unmeasured) +
                      " unmeasured launches: no projection from a part",
                  kExitPartial);
  const auto used = std::ranges::count_if(
      report.devices, [](const auto& device) { return device.ledger.launches > 0; });
  m.devices = static_cast<double>(std::max<ptrdiff_t>(1, used));
  m.simulated = report.simulated.value_or(false);
  const auto on_one = [&](double ns) { return ns / 1e9 / m.devices / m.steps; };
  m.flop = static_cast<double>(total.flop) / m.steps;
  if (total.launches > 0 && total.time.unknown == 0)
    m.gpu_s = on_one(static_cast<double>(total.time.ns));
  if (const auto wall = report.utilization.wall_ns.number()) m.wall_s = on_one(*wall);
  for (const auto& method : report.utilization.methods)
    if (method.name == "executed") {
      const Figure& over = method.wall.known() ? method.wall : method.gpu_time;
      m.utilization = over.number();
      m.over = method.wall.known() ? "wall" : "GPU";
    }
  if (total.roof.no_peak == 0 && total.roof.compute_ns > 0 && total.flop > 0 &&
      (m.utilization || k.is_given(kUtilizationGiven))) {
    // FLOP / the least time that the peaks allow for the mix.
    m.peak = static_cast<double>(total.flop) / total.roof.compute_ns * 1e9;
    m.device_names = device_names(report);
  }
  return m;
}

struct TrainArguments {
  InputArguments input;
  OutputArguments output;
  PeakArguments peak;
  std::string time;
  std::array<Number, kOptions> numbers;
};

Known known_of(const TrainArguments& a) {
  Known k;
  k.given = a.numbers;
  check_utilization(k.given[kUtilizationGiven]);
  if (!a.time.empty()) {
    k.given[kTime] = parse_seconds(a.time);
    if (k.given[kTime].value_or(0) <= 0)
      throw Failure("--time " + printable(cut(a.time, 60)) +
                    ": must be a duration such as 3.5d or 84h");
  }
  const auto peaks = a.peak.choose(a.input.reduce.fma);
  if (peaks.size() > 1) throw Failure("--precision: one, for training");
  if (!peaks.empty()) k.given_peak = peaks[0];
  return k;
}

// The rows of a table of texts. What a figure comes from is a sentence, and reads from the left.
std::vector<Line> lines_of(const Table& table) {
  const auto text = [](const TableRow& row, size_t c) {
    return std::get<std::string>(row[c].value);
  };
  size_t name_width = 0, value_width = 0;
  for (const TableRow& row : table.rows) {
    name_width = std::max(name_width, text(row, 0).size());
    value_width = std::max(value_width, text(row, 1).size());
  }
  std::vector<Line> lines;
  for (const TableRow& row : table.rows) {
    std::string name = text(row, 0), value = text(row, 1);
    name.resize(name_width + 2, ' ');
    value.insert(0, value_width - value.size(), ' ');
    lines.push_back(Line("  " + name + value).then("  " + text(row, 2), Tone::kDim));
  }
  return lines;
}

int run_train(TrainArguments& a, const CLI::App& app) {
  a.input.finish();
  a.output.finish(a.input.files());
  Known k = known_of(a);
  const bool traces = !a.input.traces.empty();
  for (const char* option :
       {"--fma", "--phase", "--rules", "--names", "--formulas", "--skip-steps"})
    if (!traces && app.count(option) > 0) refuse(option, "traces");
  if (traces && !k.is_given(kTraceSteps))
    throw Failure("traces need --trace-steps: how many steps they hold");
  if (traces) {
    const auto skipped = static_cast<double>(a.input.reduce.utilization.skip_steps);
    const Reduced reduced = reduce_traces(a.input);
    if (!reduced.report || reduced.exit_code != kExitFine) return reduced.exit_code;
    k.traces = measured_steps(*reduced.report, skipped, k);
  }
  Table people{"projection",
               {{"figure", "figure"}, {"value", "value", Kind::kRatio}, {"from", "from"}}};
  Table programs = people;
  for (const Way& way : kWays) {
    Number& value = k.figures[way.figure];
    if (value) continue;
    const auto asked = k.asked;
    value = way.value(k);
    if (!value) {
      k.asked = asked;  // by a way that is not open
      continue;
    }
    if (way.figure == kImpliedUtilization && *value > 1)
      throw Failure("the operations need " + plain(*value) +
                    " times what the devices can do in that time: a number is wrong");
    const ProjectedFigure& figure = kFigures[way.figure];
    possible(figure.name, *value);
    const std::string from = way.from(k);
    people.rows.push_back({figure.name, shown(*value, figure.unit), from});
    programs.rows.push_back({figure.key, Figure::exact(*value), from});
  }
  if (!k.figures[kOperationsFlop] && !k.figures[kTimeFlop])
    throw Failure(
        "give --forward-flop and --examples, --flop-per-step and --steps, traces with "
        "--trace-steps and --steps, or --time and --gpu or --peak (see " +
        typed("project train --help)"));
  k.refuse_what_has_no_effect();
  Section section{"Training compute", {}, people, {}};
  if (a.output.format != "markdown") {
    section.above = lines_of(people);
    section.table.reset();
  }
  return write_result({{std::move(section)}, {std::move(programs)}}, a.output);
}

Action define_train(manual::CommandLine& app) {
  app.notes =
      "Numbers may end in k, M, G, T, P or E, or have an exponent. From traces come the FLOP, GPU "
      "time and wall time of a step, the number of devices and the utilization; --devices, "
      "--utilization, --gpu and --peak override these.";
  app.examples = {{typed("project train --forward-flop 3.1e8 --examples 7.5G \\\n"
                         "    --time 3.5d --devices 8 --gpu 'P100 SXM2' --utilization 0.3"),
                   "both methods, and how far they are apart"},
                  {typed("project train trace.pb --trace-steps 20 --steps 300k --devices 64"),
                   "from 20 measured steps to a whole training"}};
  const auto a = std::make_shared<TrainArguments>();
  app.add_option("TRACE", a->input.traces,
                 "Traces of as many training steps as --trace-steps says");
  a->input.add_to(app, false);
  a->input.add_skip_steps_to(app);
  for (size_t i = 0; i < kNumbers.size(); ++i)
    add_number(app, kNumbers[i].name, a->numbers[i], kNumbers[i].help, kNumbers[i].written);
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
  const auto peaks = a.peak.choose(2);
  if (peaks.empty()) throw Failure("--gpu or --peak is missing");
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
  for (const auto& c : peaks) {
    const double seconds = possible("the time of one example", flop / (c.flop_per_s * u));
    const double per_second = possible("examples per second", 1 / seconds);
    const Figure peak = Figure::exact(c.flop_per_s);
    people.rows.push_back({c.precision, peak, duration_text(seconds), plain(per_second)});
    programs.rows.push_back(
        {c.precision, peak, Figure::exact(seconds), Figure::exact(per_second), c.source});
    sources.emplace_back("  " + c.precision + ": " + c.source, Tone::kDim);
  }
  const std::string title =
      "Inference of " + scientific(flop) + " FLOP at " + plain(100 * u) + " % of peak";
  return write_result({{{title, {}, std::move(people), std::move(sources)}}, {std::move(programs)}},
                      a.output);
}

Action define_infer(manual::CommandLine& app) {
  app.examples = {{typed("project infer --forward-flop 15503M --gpu 'K80 board'"),
                   "time of one image of VGG-16 on a K80"}};
  const auto a = std::make_shared<InferArguments>();
  add_number(app, "--forward-flop", a->forward, "FLOP of one example");
  add_number(app, "--utilization", a->utilization, "Share of peak that is reached (1)",
             Written::kShare);
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

const ProgramCommand kProject({reducer_command("project"),
                               "What a whole training run or an inference takes.", nullptr,
                               kWords});

}  // namespace flopinj::reduce
