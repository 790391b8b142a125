// What `flopinj run --help` says of each setting of a recording (collector/options/options.h).
#pragma once
#include <string_view>

#include "manual/command_line.h"

namespace flopinj {

// Of the library's variable. Empty: there is none of that name.
std::string_view help_of(std::string_view variable);

// The groups of flopinj run's options, in their order.
inline constexpr const char* kRunGroups[] = {"Usual", "What to record", "Job", "Simulator",
                                             manual::kExpert};
// In which of them the variable's option is.
const char* group_of(std::string_view variable);

}  // namespace flopinj
