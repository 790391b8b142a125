// A progress bar on a terminal, for work that takes over a second.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

namespace flopinj::reduce {

// Goes to standard error, and only where that is a terminal. Any thread may call add().
class Progress {
 public:
  Progress(uint64_t total, bool wanted)
      : total_(std::max<uint64_t>(1, total)),
        wanted_(wanted && ::isatty(STDERR_FILENO) != 0),
        next_(began_ + std::chrono::seconds(1)) {}
  // Clears its line.
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(uint64_t done) {
    constexpr size_t kWidth = 40;
    const std::lock_guard lock(lock_);
    done_ = std::min(total_, done_ + done);
    const auto now = Clock::now();
    if (!wanted_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    shown_ = true;
    const double part = static_cast<double>(done_) / static_cast<double>(total_);
    const auto filled = static_cast<size_t>(part * static_cast<double>(kWidth));
    const double left = std::chrono::duration<double>(now - began_).count() / part * (1 - part);
    std::fprintf(stderr, "\rreading [%s%s] %3.0f %%, %.0f s left\x1b[K",
                 std::string(filled, '#').c_str(), std::string(kWidth - filled, ' ').c_str(),
                 100 * part, left);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex lock_;
  uint64_t total_, done_ = 0;
  bool wanted_, shown_ = false;
  Clock::time_point began_ = Clock::now(), next_;
};

}  // namespace flopinj::reduce
