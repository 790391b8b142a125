// The report for programs. Its schema is report.schema.json.
#pragma once
#include <ostream>

#include "report/report.h"

namespace flopinj::reduce {

inline constexpr int kSchemaVersion = 1;
void write_json(std::ostream& out, const Report& report);

}  // namespace flopinj::reduce
