// A comparison in words and as JSON.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "report/comparison.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

std::vector<Section> comparison_sections(const Comparison& comparison);
nlohmann::ordered_json comparison_json(const Comparison& comparison);
// The same for conditions on figures: phases that no launch had are in it too.
nlohmann::ordered_json comparison_gate_json(const Comparison& comparison);

}  // namespace flopinj::reduce
