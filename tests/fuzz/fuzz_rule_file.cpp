// Any bytes as a file of names of scopes; as a rule file, then as a name that its rules are tried
// on.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "phases/given_names.h"
#include "phases/phases.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flopinj::reduce;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  GivenNames names;
  if (const auto error = names.add_file("fuzz", text))
    if (error->empty() || error->find('\n') != error->npos || names.any()) std::abort();
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
