// An explanation (report/explain.h) in words and as tables.
#pragma once
#include <vector>

#include "report/explain.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// At most `top` signatures are written in full.
std::vector<Section> explanation_sections(const Report&, const Explanation&, size_t top);
// For programs: the report's own tables of signatures, samples and rules, of the launches that
// belong to the figure; of a ratio and of utilization those tables of the report too.
std::vector<Table> explanation_tables(const Report&, const Explanation&);

// The peaks behind the figure's share of peak: one section for each kind of device.
std::vector<Section> explained_peaks(const Report&, const Explanation&);
Table explained_peaks_table(const Report&, const Explanation&);
// The lines before the signatures of a ratio, and of a utilization.
std::vector<Section> explained_ratio(const Report&);
std::vector<Section> explained_utilization(const Report&);

}  // namespace flopinj::reduce
