// A queue of fixed capacity with one producer and one consumer. The producer never waits: when the
// ring is full, the record is dropped and counted.
#pragma once
#include <collector/base/zero_pages.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace flopinj {

// The first `kFirst` records lie in the ring itself: a producer of few asks for no memory.
template <class T, uint64_t kFirst = 0>
class Ring {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ~Ring() { delete_pages(slots_, (mask_ + 1) * sizeof(T)); }

  // Producer. True where the memory for what comes behind the next two records is missing.
  bool wants_memory() const noexcept {
    return slots_ == nullptr && head_.load(std::memory_order_relaxed) + 2 > kFirst;
  }
  // Producer. Called once; the capacity is rounded up to a power of two. False when there is no
  // memory: every push that wants some then drops.
  bool allocate(uint32_t capacity) noexcept {
    capacity = std::bit_ceil(capacity);
    slots_ = static_cast<T*>(new_pages(capacity * sizeof(T)));
    if (slots_ == nullptr) return false;
    mask_ = capacity - 1;
    return true;
  }

  // Producer. False, and counted, when the consumer is a whole ring behind.
  bool push(const T& value) noexcept {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (head >= kFirst && (slots_ == nullptr || head - seen_tail_ > mask_)) {
      seen_tail_ = tail_.load(std::memory_order_acquire);
      if (slots_ == nullptr || head - seen_tail_ > mask_) {
        dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return false;
      }
    }
    new (slot(head)) T(value);
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // Consumer. Calls `take` for every record there is; returns how many.
  template <class Take>
  size_t drain(Take&& take) {
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    const uint64_t head = head_.load(std::memory_order_acquire);
    const size_t count = head - tail;
    for (; tail != head; ++tail) take(*std::launder(slot(tail)));
    tail_.store(tail, std::memory_order_release);
    return count;
  }

  uint64_t pushed() const noexcept { return head_.load(std::memory_order_acquire); }
  uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  // A record's place. The consumer asks only for records that it has seen pushed.
  T* slot(uint64_t at) noexcept {
    if (at < kFirst) return reinterpret_cast<T*>(first_) + at;
    return slots_ + (at & mask_);
  }

  T* slots_ = nullptr;
  uint64_t mask_ = 0;
  // The producer's copy: the consumer's line is touched only when the ring looks full.
  uint64_t seen_tail_ = 0;
  alignas(64) std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> dropped_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(T) std::byte first_[kFirst > 0 ? kFirst * sizeof(T) : 1];
};

}  // namespace flopinj
