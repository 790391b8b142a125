// One figure's launches as a report of their own: which signatures it is made of, what each of them
// was counted from, by which rules and in which ranges.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace flopinj::reduce {

// A total, phase, layer, operator, kernel and range are of launches. A precision has the FLOP of
// one number format in all launches, and no share of peak, for launches that do several have one
// time. Ratio and utilization are of figures: their explanations begin with those.
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

struct Explanation {
  FigureKind kind = FigureKind::kTotal;
  std::string name;
  // Of the figure's launches: their rows of the work table, and what they add up to: total, and
  // most FLOP first signatures, kernels, phases and rules; why launches are unmeasured.
  Report part;
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
  std::function<bool(const WorkRow&, const WorkHome&)> holds = {};
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

// The report must outlive figures and explanation.
Explanation explain(const Report& report, const NamedFigure& figure);

}  // namespace flopinj::reduce
