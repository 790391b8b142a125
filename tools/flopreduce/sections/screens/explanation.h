// An explanation (report/explain.h): the tables of the report, of the launches that belong to the
// figure.
#pragma once
#include <string>
#include <vector>

#include "report/explain.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// Keys of launch_tables(), to be said of the figure's launches too.
using AlsoTables = std::vector<std::string>;

// For people. `report` is the one that the explanation was made of.
std::vector<Section> explanation_sections(const Report& report, const Explanation&,
                                          const AlsoTables& also = {});
// For programs. Of a ratio and of utilization their tables too.
std::vector<Table> explanation_tables(const Report& report, const Explanation&,
                                      const AlsoTables& also = {});

}  // namespace flopinj::reduce
