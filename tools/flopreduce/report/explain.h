// The derivation of one figure: which signatures it is made of, what each of them was counted from,
// and the peaks behind its share of peak.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace flopinj::reduce {

// A signature's part of the figure.
struct Contribution {
  const SignatureReport* signature = nullptr;
  Work work;                        // of the launches that belong to the figure
  std::vector<std::string> ranges;  // they were launched in, most FLOP first, a few
  size_t ranges_left_out = 0;
};

// The figure's part on one kind of device.
struct OnDevice {
  const DevicePeaksReport* peaks = nullptr;
  Work work;
  std::map<size_t, u128> flop;  // by precision (Report::precisions)
};

// A total, phase, layer, operator, kernel and range are of launches. A precision has the FLOP of
// one number format in all launches: `work` and contributions hold no others, and no share of peak,
// for launches that do several have one time. Ratio and utilization are of figures: their
// explanations begin with those.
enum class FigureKind : uint8_t {
  kTotal,
  kBackwardForward,  // "ratio"
  kShareOfPeak,      // "utilization"
  kPrecision,
  kPhase,
  kLayer,
  kOperator,
  kKernel,
  kRange
};
// As people write it and programs read it: "total".
const char* word(FigureKind kind);
std::optional<FigureKind> figure_kind(std::string_view word);

// The figure's launches that have their phase from one rule.
struct ByRule {
  const RuleReport* rule = nullptr;
  Work work;
};

struct Explanation {
  FigureKind kind = FigureKind::kTotal;
  std::string name;
  Work work;
  std::vector<Contribution> contributions;  // most FLOP first; they add up to `work`
  std::vector<OnDevice> devices;
  std::vector<ByRule> rules;  // most FLOP first; they add up to `work`
  // Of a precision: launches whose FLOP of several precisions are an estimate. Intervals are of all
  // precisions together, so there is none.
  uint64_t mixed_estimates = 0;
};

// What people may ask about.
struct NamedFigure {
  FigureKind kind = FigureKind::kTotal;
  std::string name;
  std::string also = {};  // another name that means the same; may be empty
  // Whether the figure is of these launches. Empty: of the report's figure of this kind and name.
  std::function<bool(const RowReport&)> holds = {};
  std::optional<size_t> precision = {};  // Report::precisions: then only FLOP of it
};
// "kernel:sgemm": the other name, where one of `others` has the same.
std::string asked_by(const NamedFigure& figure, const std::vector<NamedFigure>& others);

// Figures that `name` may mean: those of that name; else kernels with that mangled name and ranges
// whose innermost range has it; else those that have it in their name in any case. "total" is the
// whole. Several that are of the same launches are one.
// With a kind, only figures of that.
std::vector<NamedFigure> figures_named(const Report& report, std::string_view name,
                                       std::optional<FigureKind> kind = {});
// The names nearest to one that is not known, at most three.
std::vector<NamedFigure> figures_near(const Report& report, std::string_view name);

// The report must hold its rows (ReduceOptions::keep_rows), and outlive figures and explanation.
Explanation explain(const Report& report, const NamedFigure& figure);

// What the ratio of backward to forward work is made of.
struct SidePart {
  std::string_view side;  // "backward", "forward"
  std::string name;
  Work work;
};
// By side, most FLOP first. Operators: of those launches that belong to one.
std::vector<SidePart> sides_by_kernel(const Report& report);
std::vector<SidePart> sides_by_operator(const Report& report);

}  // namespace flopinj::reduce
