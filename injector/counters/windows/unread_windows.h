// Windows that are closed, with the image of their counters, until the planner's thread evaluates
// them: one call of CUPTI's host API for each launch in them, which is not the program's to wait
// for. At most kMost wait; a launching thread that finds no room evaluates its own.
//
// Images are large, so the memory of those that have been read is kept for the next ones.
//
// Threads: any; all functions lock.
#pragma once
#include <collector/base/mutex.h>
#include <injector/counters/access/open_window.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace flopinj {

struct UnreadWindow {
  std::unique_ptr<OpenWindow> window;
  std::vector<uint8_t> image;
};

class UnreadWindows {
 public:
  static constexpr size_t kMost = 16, kMostSpares = 2;

  // False, and nothing is taken: there is no room.
  bool push(UnreadWindow& window) {
    const MutexLock lock(mutex_);
    if (count_ == kMost) return false;
    waiting_[(first_ + count_++) % kMost] = std::move(window);
    return true;
  }
  std::optional<UnreadWindow> pop() {
    const MutexLock lock(mutex_);
    if (count_ == 0) return std::nullopt;
    --count_;
    return std::move(waiting_[std::exchange(first_, (first_ + 1) % kMost)]);
  }
  void keep(std::vector<uint8_t> image) {
    const MutexLock lock(mutex_);
    if (spares_.size() < kMostSpares) spares_.push_back(std::move(image));
  }
  std::vector<uint8_t> spare() {
    const MutexLock lock(mutex_);
    if (spares_.empty()) return {};
    std::vector<uint8_t> image = std::move(spares_.back());
    spares_.pop_back();
    return image;
  }

 private:
  Mutex mutex_;
  std::array<UnreadWindow, kMost> waiting_ FLOPINJ_GUARDED_BY(mutex_);  // a ring
  size_t first_ FLOPINJ_GUARDED_BY(mutex_) = 0, count_ FLOPINJ_GUARDED_BY(mutex_) = 0;
  std::vector<std::vector<uint8_t>> spares_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
