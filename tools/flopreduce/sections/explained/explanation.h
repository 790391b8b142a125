// An explanation (report/explain.h) in words and as fields.
#pragma once
#include <vector>

#include "report/explain.h"
#include "sections/parts/fields.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// At most `top` signatures are written in full.
std::vector<Section> explanation_sections(const Report&, const Explanation&, size_t top);
Json explanation_json(const Report&, const Explanation&);
Json explanation_schema();

// The peaks behind the figure's share of peak: one section for each kind of device.
std::vector<Section> explained_peaks(const Report&, const Explanation&);
void explained_peaks_fields(Fields&, const Report&, const Explanation&);
// The lines before the signatures of a ratio, and of a utilization.
std::vector<Section> explained_ratio(const Report&);
void explained_ratio_fields(Fields&, const Report&);
std::vector<Section> explained_utilization(const Report&);
void explained_utilization_fields(Fields&, const Report&);

}  // namespace flopinj::reduce
