// Fields of records that several subjects have.
#pragma once
#include <optional>
#include <string>

#include "report/report.h"
#include "sections/parts/cells.h"
#include "sections/parts/fields.h"

namespace flopinj::reduce {

// What one set of launches did.
struct Known {
  bool flop = true;
  bool interval = true;  // false where the work's is of another set than its FLOP
};
void work_fields(Fields& f, const Work& work, Known known = {});
inline void work_part(Fields& f, const Work& work, Known known = {}) {
  f.part("work", [&](Fields& part) { work_fields(part, work, known); });
}
inline void work_object(Fields& f, const char* key, const Work& work, const char* about = "",
                        Known known = {}) {
  f.object(key, about, [&](Fields& object) { work_part(object, work, known); });
}
// FLOP by precision, and integer operations of the tensor cores by source.
void precision_fields(Fields& f, const Report& report, const Flop& flop);
void gate_fields(Fields& f, const std::vector<GateResult>& gates);
void signature_fields(Fields& f, const SignatureReport& signature);
// expected_ratio, of backward / forward of matrix work, and what it is taken from.
void expected_fields(Fields& f, const std::optional<ExpectedRatio>& expected);
void verdict_field(Fields& f, RatioVerdict verdict);
void first_layer_fields(Fields& f, const LayerReport& layer);
void ledger_line_fields(Fields& f, const LedgerLine& line);

// Times and counts that may pass 64 bits are held at the largest.
inline std::optional<u128> when(bool known, u128 value) {
  return known ? std::optional(value) : std::nullopt;
}

}  // namespace flopinj::reduce
