// Kernels that wait for other kernels, processes or devices. Serialised or replayed by a
// measurement window they can hang the program for ever, so they are never inside one. The list is
// visible and errs on the side of leaving out.
#pragma once
#include <span>
#include <string_view>

namespace flopinj {

// True when the mangled kernel name contains one of the patterns below (plain substrings,
// case-insensitive).
bool must_not_be_measured(std::string_view mangled_name);
std::span<const std::string_view> never_measured_patterns();

}  // namespace flopinj
