// A queue in one block of memory, whose elements keep their numbers: nothing is allocated for an
// element.
#pragma once
#include <collector/base/assert.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace flopinj {

template <class T>
class RingQueue {
 public:
  // The element and its number: the first has 0, the next one more each.
  std::pair<T*, uint64_t> push_back() {
    if (size() == slots_.size()) grow();
    T& slot = at(end_);
    slot = T{};
    return {&slot, end_++};
  }
  T& front() { return (*this)[begin_]; }
  void pop_front() {
    constexpr size_t kKeptEmpty = size_t{1} << 12;  // what a burst took is given back
    ++begin_;
    if (empty() && slots_.size() > kKeptEmpty) slots_ = {};
  }
  T& operator[](uint64_t number) {
    FLOPINJ_ASSERT(number >= begin_ && number < end_);
    return at(number);
  }
  size_t size() const { return static_cast<size_t>(end_ - begin_); }
  bool empty() const { return begin_ == end_; }

 private:
  T& at(uint64_t number) { return slots_[static_cast<size_t>(number) & (slots_.size() - 1)]; }
  void grow() {
    constexpr size_t kFirst = 16;
    std::vector<T> old(slots_.empty() ? kFirst : slots_.size() * 2);  // may throw
    old.swap(slots_);
    for (uint64_t number = begin_; number < end_; ++number)
      at(number) = std::move(old[static_cast<size_t>(number) & (old.size() - 1)]);
  }

  std::vector<T> slots_;  // a power of two
  uint64_t begin_ = 0, end_ = 0;
};

}  // namespace flopinj
