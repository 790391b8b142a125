// JSON for programs.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "report/report.h"

namespace flopinj::reduce {

// The JSON form of a report. Without signatures that list, which is most of it, is null.
void write_json(std::ostream& out, const Report& report, bool signatures = true);
// ASCII only: a name cannot move the cursor of a terminal that shows this. Bytes that are not UTF-8
// become U+FFFD.
void write_json(std::ostream& out, const nlohmann::ordered_json& json);

}  // namespace flopinj::reduce
