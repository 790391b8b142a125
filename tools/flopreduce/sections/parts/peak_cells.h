// Cells and fields of shares of peak, for the subjects that have them.
#pragma once
#include "report/report.h"
#include "sections/parts/fields.h"

namespace flopinj::reduce {

// False for a precision that no launch used: its peak does not matter to this report.
bool executed(const Report& report, const std::string& precision);
Mark share_mark(const Work& work);
Cell share_cell(const Figure& of_peak);  // "above peak" where it cannot be
// `error`: what else is above a roof.
void attained_fields(Fields& f, const Figure& of_peak, const std::string& error = "");
void attained_object(Fields& f, const char* key, const Figure& of_peak, const char* about);
void method_fields(Fields& f, const UtilizationMethod& method);

}  // namespace flopinj::reduce
