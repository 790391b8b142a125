// The simulated clock: nanoseconds of modelled time, one clock for all threads of the process.
// Calls of the program cost host time (host_costs.def), whoever waits for work is at its modelled
// end, and nothing else moves the clock: no real time, and no call of a tool. So a program's times
// are the same on every machine. What several threads do at the same time adds up.
#pragma once
#include <cstdint>
#include <string_view>

namespace simgpu {

uint64_t now_ns();
void spend_ns(uint64_t host_ns);
// The clock is at least there when this returns, at once.
void wait_until_ns(uint64_t time);

struct HostCost {
  std::string_view calls;  // whose names begin so
  uint32_t ns;
  std::string_view what;
};
inline constexpr HostCost kHostCosts[] = {
#define SIMGPU_HOST_COST(calls, ns, what) {#calls, ns, what},
#include "driver/execution/host_costs.def"
#undef SIMGPU_HOST_COST
};

consteval uint32_t host_cost_ns(std::string_view call) {
  for (const HostCost& cost : kHostCosts)
    if (call.starts_with(cost.calls)) return cost.ns;
  return 0;
}

}  // namespace simgpu
