#include <injector/activity/activity_buffers.h>

#include <algorithm>
#include <new>

namespace flopinj {
namespace {

constexpr std::align_val_t kAlignment{8};  // asked for by CUPTI

uint8_t* new_bytes(size_t bytes) noexcept {
  return static_cast<uint8_t*>(::operator new(bytes, kAlignment, std::nothrow));
}

void delete_bytes(uint8_t* bytes) noexcept { ::operator delete(bytes, kAlignment, std::nothrow); }

}  // namespace

ActivityBuffers::ActivityBuffers(Limits limits, bool may_refuse)
    : limits_(limits), may_refuse_(may_refuse), reserve_(new_bytes(kReserved * kReservedBytes)) {
  free_.reserve(limits_.kept);
  held_.reserve(2 * limits_.most_bytes / limits_.buffer_bytes + kReserved);
}

// What CUPTI still holds is left to it.
ActivityBuffers::~ActivityBuffers() {
  for (uint8_t* const buffer : free_) delete_bytes(buffer);
  if (held_.empty()) delete_bytes(reserve_);
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
  for (size_t i = 0; i < kReserved && reserve_ != nullptr && held_.size() < held_.capacity(); ++i) {
    uint8_t* const buffer = reserve_ + i * kReservedBytes;
    const auto same = [&](const Buffer& held) { return held.data == buffer; };
    if (std::none_of(held_.begin(), held_.end(), same)) return {buffer, kReservedBytes};
  }
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
  held_.push_back(buffer);  // there is room: see allocate()
  held_bytes_ += buffer.bytes;
  return buffer;
}

void ActivityBuffers::give_back(uint8_t* data) noexcept {
  const MutexLock lock(mutex_);
  const auto it = std::find_if(held_.begin(), held_.end(),
                               [&](const Buffer& held) { return held.data == data; });
  if (it == held_.end()) return;
  const Buffer buffer = *it;
  *it = held_.back();
  held_.pop_back();
  held_bytes_ -= buffer.bytes;
  if (buffer.bytes != limits_.buffer_bytes) return;  // of the reserve
  if (free_.size() < limits_.kept)
    free_.push_back(data);
  else
    delete_bytes(data);
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
