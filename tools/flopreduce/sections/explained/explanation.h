// An explanation (report/explain.h) in words and as JSON.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "report/explain.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// At most `top` signatures are told in full.
std::vector<Section> explanation_sections(const Report&, const Explanation&, size_t top);
nlohmann::ordered_json explanation_json(const Report&, const Explanation&);

// Of these, what the figure's share of peak stands on: one section for each kind of device.
std::vector<Section> explained_peaks(const Report&, const Explanation&);
nlohmann::ordered_json explained_peaks_json(const Report&, const Explanation&);
// What stands before the signatures of a ratio, and of a utilization.
std::vector<Section> explained_ratio(const Report&);
nlohmann::ordered_json explained_ratio_json(const Report&);
std::vector<Section> explained_utilization(const Report&);
nlohmann::ordered_json explained_utilization_json(const Report&);

}  // namespace flopinj::reduce
