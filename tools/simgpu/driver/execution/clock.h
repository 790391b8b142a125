// The clock of all timestamps: nanoseconds since the Unix epoch, steady within the process.
#pragma once
#include <chrono>
#include <cstdint>
#include <thread>

namespace simgpu {

inline uint64_t now_ns() {
  using namespace std::chrono;
  static const auto offset = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()) -
                             duration_cast<nanoseconds>(steady_clock::now().time_since_epoch());
  const auto now = duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()) + offset;
  return static_cast<uint64_t>(now.count());
}

// Returns when the clock has reached `time`. Short waits spin: a sleep takes longer than most
// kernels.
inline void wait_until_ns(uint64_t time) {
  for (uint64_t now = now_ns(); now < time; now = now_ns()) {
    if (time - now > 200'000) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(time - now - 100'000));
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace simgpu
