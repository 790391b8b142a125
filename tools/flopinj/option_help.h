// What `flopinj run --help` says of each setting of a recording (collector/options/options.h).
#pragma once
#include <string_view>

namespace flopinj {

// Of the library's variable. Empty: there is none of that name.
std::string_view help_of(std::string_view variable);

}  // namespace flopinj
