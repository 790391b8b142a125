// What SIMGPU_FAULT asks for: a comma list of the names in faults.def, some with "=N" or
// "=TEXT". Both simulated libraries read it with this parser.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace simgpu {

struct Faults {
#define SIMGPU_FLAG(name, effect) bool name = false;
#define SIMGPU_NUMBER(name, unit, effect) uint64_t name = 0;    // 0: not asked for
#define SIMGPU_TEXT(name, unit, effect) std::string name = {};  // empty: not asked for
#include "faults/faults.def"
#undef SIMGPU_FLAG
#undef SIMGPU_NUMBER
#undef SIMGPU_TEXT
};

// An item that is no fault, or lacks its number from 1 or its text, is passed over and gets one
// line in `complaints`.
Faults parse_faults(std::string_view text, std::vector<std::string>& complaints);

// Of left_overs.def.
struct LeftOver {
  std::string_view functions, when, why;
};
std::span<const LeftOver> left_overs();
// Whether strict_callbacks lets a tool call the function of the driver (by any version of it)
// inside a callback.
bool allowed_in_callback(std::string_view function);

// Every fault and its effect, one a line.
std::string list_of_faults();

}  // namespace simgpu
