// Of shares of peak, for the subjects that have them.
#pragma once
#include "report/report.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// False for a precision that no launch used: its peak does not matter to this report.
bool executed(const Report& report, const std::string& precision);
Cell share_cell(const Figure& of_peak);  // "above peak" where it cannot be

}  // namespace flopinj::reduce
