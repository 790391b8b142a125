// Real time between two looks at something that another thread or process will do. Pauses grow with
// the wait: it lasts no more than a quarter longer for them, and takes little of a processor.
#pragma once
#include <algorithm>
#include <chrono>
#include <thread>

namespace simgpu {

class Patience {
 public:
  void rest() const {
    using std::chrono::microseconds;
    const auto waited =
        std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - began_);
    std::this_thread::sleep_for(std::clamp(waited / 4, microseconds(20), microseconds(4'000)));
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace simgpu
