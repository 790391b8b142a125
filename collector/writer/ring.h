// A single-producer single-consumer queue of fixed capacity. The producer never
// waits: when the ring is full, the record is dropped and counted.
#pragma once
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

namespace flopinj {

template <class T>
class Ring {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Producer. Called once, before the first push; the capacity is rounded up to a power of two.
  // False when there is no memory: every push then drops.
  bool allocate(uint32_t capacity) noexcept {
    capacity = std::bit_ceil(capacity);
    // Not initialized: a page is the process's from the first record in it on.
    slots_.reset(static_cast<T*>(::operator new(capacity * sizeof(T), std::nothrow)));
    if (!slots_) return false;
    mask_ = capacity - 1;
    ready_.store(true, std::memory_order_release);
    return true;
  }
  bool allocated() const noexcept { return slots_ != nullptr; }

  // Producer. False, and counted, when the consumer is a whole ring behind.
  bool push(const T& value) noexcept {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (!slots_ || head - seen_tail_ > mask_) {
      seen_tail_ = tail_.load(std::memory_order_acquire);
      if (!slots_ || head - seen_tail_ > mask_) {
        dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return false;
      }
    }
    new (&slots_.get()[head & mask_]) T(value);
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // Consumer. Calls `take` for every record there is; returns how many.
  template <class Take>
  size_t drain(Take&& take) {
    if (!ready_.load(std::memory_order_acquire)) return 0;
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    const uint64_t head = head_.load(std::memory_order_acquire);
    const size_t count = head - tail;
    for (; tail != head; ++tail) take(slots_.get()[tail & mask_]);
    tail_.store(tail, std::memory_order_release);
    return count;
  }

  uint64_t pushed() const noexcept { return head_.load(std::memory_order_acquire); }
  uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  struct Free {
    void operator()(T* slots) const { ::operator delete(slots); }
  };
  std::unique_ptr<T, Free> slots_;
  uint64_t mask_ = 0;
  uint64_t seen_tail_ =
      0;  // producer's copy: touches the consumer's line only when the ring looks full
  alignas(64) std::atomic<uint64_t> head_{0};
  std::atomic<uint64_t> dropped_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
  std::atomic<bool> ready_{false};
};

}  // namespace flopinj
