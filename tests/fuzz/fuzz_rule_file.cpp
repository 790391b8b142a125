// Any bytes as a file of names of scopes; as one of formulas, which are then worked out; as a rule
// file, then as a name that its rules are tried on.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "phases/given_formulas.h"
#include "phases/given_names.h"
#include "phases/phases.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flopinj::reduce;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  GivenNames names;
  if (const auto error = names.add_file("fuzz", text))
    if (error->empty() || error->find('\n') != error->npos || names.any()) std::abort();
  GivenFormulas formulas;
  if (const auto error = formulas.add_file("fuzz", text))
    if (error->empty() || error->find('\n') != error->npos || formulas.any()) std::abort();
  const std::vector<Shape> sizes = {{3, 4, 5}, {}, {INT64_MAX, INT64_MAX, INT64_MAX}, {0}};
  for (const GivenFormula* formula : formulas.all()) {
    const Formula value = formula->of_call({.sizes = &sizes});
    if (value.flop.has_value() == (*value.why_not != '\0')) std::abort();
    formula->of_launch({1, 2, 3}, {UINT32_MAX, UINT32_MAX, UINT32_MAX});
  }
  fits_pattern(text.substr(0, text.size() / 2), text.substr(text.size() / 2));
  PhaseRules rules;
  const size_t before = rules.rules().size();
  if (const auto error = rules.add_rule_file("fuzz", text)) {
    if (error->empty() || error->find('\n') != error->npos) std::abort();
    if (rules.rules().size() != before || rules.user_rules() != 0) std::abort();
    return 0;
  }
  if (rules.rules().size() != before + rules.user_rules()) std::abort();
  for (uint32_t i = 0; i < rules.user_rules(); ++i) {
    std::string error;
    const std::string line = PhaseRules::line_of(rules.rules()[i]);
    const auto again = PhaseRules::parse_line(line, error);
    if (again.size() != 1 || PhaseRules::line_of(again[0]) != line) std::abort();
  }
  for (const auto subject :
       {PhaseRules::Subject::kRange, PhaseRules::Subject::kThread, PhaseRules::Subject::kKernel})
    rules.match(subject, text, "backward");
  return 0;
}
