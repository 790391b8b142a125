#include <collector/base/zero_pages.h>
#include <injector/activity/activity_buffers.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace flopinj {
namespace {

// Pages of their own, which can go back to the system while CUPTI keeps the addresses.
uint8_t* new_bytes(size_t bytes) noexcept { return static_cast<uint8_t*>(new_pages(bytes)); }

}  // namespace

ActivityBuffers::ActivityBuffers(Limits limits, bool may_refuse)
    : limits_(limits), may_refuse_(may_refuse) {
  free_.reserve(limits_.kept);
  held_.reserve(2 * limits_.most_bytes / limits_.buffer_bytes + kReserved);
  left_.reserve(limits_.most_left);
  const MutexLock lock(mutex_);
  fill_reserve();
}

// What CUPTI still holds is left to it.
ActivityBuffers::~ActivityBuffers() {
  for (uint8_t* const buffer : free_) delete_pages(buffer, limits_.buffer_bytes);
  for (uint8_t* const buffer : reserve_) delete_pages(buffer, kReservedBytes);
}

void ActivityBuffers::fill_reserve() noexcept {
  for (uint8_t*& buffer : reserve_)
    if (buffer == nullptr) buffer = new_bytes(kReservedBytes);
}

ActivityBuffers::Buffer ActivityBuffers::allocate() noexcept {
  if (!free_.empty()) {
    uint8_t* const buffer = free_.back();
    free_.pop_back();
    return {buffer, limits_.buffer_bytes};
  }
  if (held_.size() < held_.capacity() - kReserved)
    if (uint8_t* const buffer = new_bytes(limits_.buffer_bytes); buffer != nullptr)
      return {buffer, limits_.buffer_bytes};
  ++shortages_;
  for (uint8_t*& buffer : reserve_)
    if (buffer != nullptr && held_.size() < held_.capacity())
      return {std::exchange(buffer, nullptr), kReservedBytes};
  return {};
}

ActivityBuffers::Buffer ActivityBuffers::take() noexcept {
  const MutexLock lock(mutex_);
  if (held_bytes_ >= limits_.most_bytes) {
    ++shortages_;
    if (may_refuse_) return {};
  }
  const Buffer buffer = allocate();
  if (buffer.data == nullptr) return {};
  held_.push_back({buffer, ++taken_});  // there is room: see allocate()
  held_bytes_ += buffer.bytes;
  return buffer;
}

void ActivityBuffers::keep_or_free(Buffer buffer) noexcept {
  if (buffer.bytes == limits_.buffer_bytes && free_.size() < limits_.kept)
    return free_.push_back(buffer.data);
  if (buffer.bytes == kReservedBytes)
    for (uint8_t*& place : reserve_)
      if (place == nullptr) return std::swap(place, buffer.data);
  delete_pages(buffer.data, buffer.bytes);
}

void ActivityBuffers::give_back(uint8_t* data) noexcept {
  const auto taken_from = [&](auto& buffers) {
    const auto it = std::ranges::find(buffers, data, [](const Buffer& one) { return one.data; });
    if (it == buffers.end()) return Buffer{};
    const Buffer found = *it;
    *it = buffers.back();
    buffers.pop_back();
    return found;
  };
  const MutexLock lock(mutex_);
  if (const Buffer buffer = taken_from(held_); buffer.data != nullptr) {
    held_bytes_ -= buffer.bytes;
    keep_or_free(buffer);
  } else if (const Buffer late = taken_from(left_); late.data != nullptr) {
    keep_or_free(late);
  }
}

void ActivityBuffers::recording_ended(bool for_good) noexcept {
  const MutexLock lock(mutex_);
  std::erase_if(held_, [&](Held& buffer) FLOPINJ_REQUIRES(mutex_) {
    if (!std::exchange(buffer.of_earlier, true) && !for_good) return false;
    if (left_.size() == limits_.most_left || madvise(buffer.data, buffer.bytes, MADV_DONTNEED) != 0)
      return false;
    left_.push_back(buffer);  // there is room
    held_bytes_ -= buffer.bytes;
    return true;
  });
  for (uint8_t* const buffer : free_) delete_pages(buffer, limits_.buffer_bytes);
  free_.clear();
  fill_reserve();
}

bool ActivityBuffers::left_behind(const uint8_t* data) const {
  const MutexLock lock(mutex_);
  return std::ranges::find(left_, data, &Buffer::data) != left_.end();
}

uint64_t ActivityBuffers::taken() const {
  const MutexLock lock(mutex_);
  return taken_;
}

size_t ActivityBuffers::held_of(uint64_t taken) const {
  const MutexLock lock(mutex_);
  return static_cast<size_t>(std::ranges::count_if(
      held_, [&](const Held& buffer) { return !buffer.of_earlier && buffer.number <= taken; }));
}

size_t ActivityBuffers::left() const {
  const MutexLock lock(mutex_);
  return left_.size();
}

size_t ActivityBuffers::held_bytes() const {
  const MutexLock lock(mutex_);
  return held_bytes_;
}

uint64_t ActivityBuffers::shortages() const {
  const MutexLock lock(mutex_);
  return shortages_;
}

}  // namespace flopinj
