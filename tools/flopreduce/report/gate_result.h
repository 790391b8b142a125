// What a condition on a report's figures (gates/gate.h) came to.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/wide.h"

namespace flopinj::reduce {

enum class Verdict : uint8_t {
  kPassed,
  kFailed,
  kNotKnown,  // counts as failed
  kInvalid,   // a name that the report does not have: an error of usage
};

struct GateResult {
  // A figure that the condition names, as the report has it.
  struct Named {
    std::string name;
    std::optional<double> value;
    std::optional<u128> whole;  // an integer to its last digit
    std::string reason;         // why it has no value
  };
  std::string condition;
  Verdict verdict = Verdict::kInvalid;
  std::vector<Named> figures;
  std::string message;  // one line: the figures with their values, or what is wrong with a name
};

}  // namespace flopinj::reduce
