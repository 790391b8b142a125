// How causes begin that others than people look at.
#pragma once
#include <string_view>

namespace flopinj::reduce {

// The formula is of real numbers, and the operator's are complex.
inline constexpr std::string_view kComplexNumbers = "complex numbers";

}  // namespace flopinj::reduce
