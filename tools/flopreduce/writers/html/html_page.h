// The HTML page without its data: the parts before and after. From writers/html/, put together
// when the project is built.
#pragma once
#include <string_view>

namespace flopinj::reduce {

extern const std::string_view kPageBeforeData, kPageAfterData;

}  // namespace flopinj::reduce
