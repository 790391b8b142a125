#include "driver/execution/clock.h"

#include <atomic>

namespace simgpu {
namespace {

// Not 0, which stands for no time in many places.
constexpr uint64_t kBegin = 1'000'000'000;

constinit std::atomic<uint64_t> clock_ns{kBegin};

}  // namespace

uint64_t now_ns() { return clock_ns.load(); }

void spend_ns(uint64_t host_ns) { clock_ns.fetch_add(host_ns); }

void wait_until_ns(uint64_t time) {
  uint64_t now = clock_ns.load();
  while (now < time && !clock_ns.compare_exchange_weak(now, time)) {
  }
}

}  // namespace simgpu
