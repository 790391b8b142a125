// The HTML page without its data: what stands before and after it. From writers/html/, put together
// when the project is built.
#pragma once
#include <string_view>

namespace flopinj::reduce {

extern const std::string_view kPageBeforeData, kPageAfterData;

}  // namespace flopinj::reduce
