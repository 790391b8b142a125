// What a device's launches came to, row by row and stretch by stretch, while nobody knows yet what
// one of them is worth.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flopinj::reduce {

// Bytes that all logs of a reading may take together. Any thread.
class LogRoom {
 public:
  explicit LogRoom(size_t bytes) : bytes_(bytes), left_(bytes) {}
  // Hardly any of it is left.
  bool is_full() const { return left_.load(std::memory_order_relaxed) < bytes_ / 16; }
  bool take(size_t bytes) {
    size_t left = left_.load(std::memory_order_relaxed);
    while (left >= bytes)
      if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
    return false;
  }
  void give(size_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  const size_t bytes_;
  std::atomic<size_t> left_;
};

struct RowLog {
  // Of a row, so much of one kind: RowTimes::of_kind().
  struct Sum {
    uint32_t row = 0, kind = 0;
    uint64_t amount = 0;
  };
  // So long the same kernels ran, each of which is a part.
  struct Stretch {
    uint64_t ns = 0;
    size_t parts = 0;
  };
  struct Part {
    uint64_t ran_ns = 0, length_ns = 0;  // before the stretch, and in all
    uint32_t row = 0;
    bool windowed = false;
  };
  // Launches without a place in time.
  struct Unplaced {
    uint64_t launches = 0, timed = 0, ns = 0;  // the latter of the timed ones
    uint32_t row = 0;
    bool windowed = false;
    bool counts = true;  // as time does that has come to what counts
  };
  std::vector<Sum> sums;
  std::vector<Stretch> stretches;
  std::vector<Part> parts;
  std::vector<Unplaced> unplaced;

  size_t bytes() const;
  // Those of another log, whose rows have other numbers here.
  void add(const RowLog& other, std::span<const uint32_t> rows);
  void add(const RowLog& other);
  // Sums of one kind become one, where there are twice as many as there were after the last time.
  void add_up();

 private:
  size_t added_up_ = 0;
};

}  // namespace flopinj::reduce
