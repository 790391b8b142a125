// A progress bar on a terminal, for work that takes over a second.
#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>

namespace flopinj::reduce {

// Goes to standard error, and only where that is a terminal. Any thread may call add().
class Progress {
 public:
  Progress(uint64_t total, bool wanted);
  ~Progress();  // clears its line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void add(uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex lock_;
  uint64_t total_, done_ = 0;
  bool wanted_, shown_ = false;
  Clock::time_point began_ = Clock::now(), next_;
};

}  // namespace flopinj::reduce
