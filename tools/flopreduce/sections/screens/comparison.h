// A comparison in words and as fields.
#pragma once
#include <vector>

#include "report/comparison.h"
#include "sections/parts/fields.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// `a`, `b`: the reports that were compared, whose programs are named.
std::vector<Section> comparison_sections(const Comparison& comparison, const Report& a,
                                         const Report& b);
Json comparison_json(const Comparison& comparison);
Json comparison_schema();
// The same for conditions on figures: phases that no launch had are in it too.
Json comparison_gate_json(const Comparison& comparison);

}  // namespace flopinj::reduce
