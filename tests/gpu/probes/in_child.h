// A part of a probe in a process of its own, where it may crash or hang.
#pragma once
#include <string>

namespace probe {

// The part that this process is to do; empty: the probe itself.
extern std::string part;

// Runs `probes PROBE PART` and says how it ended. What it says itself comes before.
void in_child(const std::string& probe, const std::string& part);

}  // namespace probe
