// Conditions of --fail-if, for programs. For people standard error names the failed conditions.
#include "sections/parts/cells.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

const char* word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return "passed";
    case Verdict::kFailed:
      return "failed";
    case Verdict::kNotKnown:
      return "not_known";
    case Verdict::kInvalid:
      break;
  }
  return "invalid";
}

Columns<GateResult> gate_columns() {
  Columns<GateResult> c;
  c.text("condition", "condition", &GateResult::condition);
  c.text(
      "verdict", "verdict", [](const GateResult& gate) { return word_of(gate.verdict); },
      "passed: the condition does not hold; failed: it does, exit code 1; not_known: a figure that "
      "is not known decides it, exit code 1; invalid: it names a figure that there is not, exit "
      "code 2");
  c.text("message", "message", &GateResult::message,
         "the figures with their values, or what is wrong with a name");
  return c;
}

using GateFigureRow = Of<GateResult, GateResult::Named>;
Columns<GateFigureRow> gate_figure_columns() {
  using Named = GateResult::Named;
  Columns<GateFigureRow> c;
  c.text("condition", "condition", of_outer(&GateResult::condition));
  c.text("figure", "figure", of_one(&Named::name), "as in the condition");
  c.exact("value", "value", Kind::kRatio, of_one(&Named::value), "true is 1, false is 0");
  c.text(
      "value_exact", "exactly",
      [](const GateFigureRow& row) {
        const std::optional<u128>& whole = row.one.whole;
        return whole ? std::optional(to_decimal(*whole)) : text_or_null(row.one.word);
      },
      "where it is a whole number, or one of several names");
  c.text("reason", "reason", or_null(of_one(&Named::reason)), "why it has no value");
  return c;
}

const TableSource kGateTable("gates", "conditions of --fail-if, in their order", gate_columns,
                             &Report::gates);
const TableSource kGateFigures("gate_figures", "the figures that these conditions name",
                               gate_figure_columns, each_of(&Report::gates, &GateResult::figures));

}  // namespace

const Subject kGates = {{&kGateTable, &kGateFigures}};

}  // namespace flopinj::reduce
