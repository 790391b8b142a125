// An explanation (report/explain.h): the tables of the report, of the launches that belong to the
// figure.
#pragma once
#include <vector>

#include "report/explain.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// For people. `report` is the one that the explanation was made of.
std::vector<Section> explanation_sections(const Report& report, const Explanation&);
// For programs. Of a ratio and of utilization their tables too.
std::vector<Table> explanation_tables(const Report& report, const Explanation&);

}  // namespace flopinj::reduce
