// Conditions of --fail-if, for programs. For people standard error names the failed conditions.
#include "sections/parts/records.h"
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

}  // namespace

void gate_fields(Fields& f, const std::vector<GateResult>& gates) {
  f.list("gates", gates, "conditions of --fail-if, in their order",
         [](Fields& gate, const GateResult& result) {
           gate("condition", result.condition);
           gate.word(
               "verdict", word_of(result.verdict), {"passed", "failed", "not_known", "invalid"},
               "passed: the condition does not hold; failed: it does, exit code 1; not_known: "
               "a figure that is not known decides it, exit code 1; invalid: it names a "
               "figure that there is not, exit code 2");
           gate.list("figures", result.figures, "that the condition names, in its order",
                     [](Fields& figure, const GateResult::Named& named) {
                       figure("name", named.name, "as in the condition");
                       figure("value", named.value, "true is 1, false is 0");
                       figure("value_exact",
                              named.whole ? std::optional(to_decimal(*named.whole)) : std::nullopt,
                              "where it is a whole number");
                       figure("reason", text_or_null(named.reason), "why it has no value");
                     });
         });
}

namespace {

void fields_of_report(Fields& f, const Report& report) { gate_fields(f, report.gates); }

}  // namespace

const Subject kGates = {nullptr, fields_of_report};

}  // namespace flopinj::reduce
