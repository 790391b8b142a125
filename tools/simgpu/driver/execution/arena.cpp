#include "driver/execution/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>

namespace simgpu {
namespace {

constexpr uint64_t kGranule = 512;
constexpr uint64_t kLarge = uint64_t{1} << 20;       // from here on a block has pages of its own,
constexpr uint64_t kDevicePage = uint64_t{1} << 21;  // as a GPU has them: programs count on it
constexpr uint64_t kPage = 4096;
constexpr uint64_t kSmallest = uint64_t{1} << 26;

void* reserve(uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

uint64_t chunk_bytes(uint64_t bytes) { return bytes / kChunkBytes * sizeof(SectorChunk); }

}  // namespace

Arena::Arena(uint64_t bytes) {
  for (; bytes >= kSmallest; bytes /= 2) {
    void* memory = reserve(bytes + kDevicePage);
    void* chunks = memory != nullptr ? reserve(chunk_bytes(bytes)) : nullptr;
    if (chunks != nullptr) {
      reserved_ = memory;
      base_ = round_up(reinterpret_cast<uint64_t>(memory), kDevicePage);
      bytes_ = bytes;
      chunks_ = static_cast<SectorChunk*>(chunks);
      free_.emplace(base_, bytes_);
      free_bytes_ = bytes_;
      return;
    }
    if (memory != nullptr) munmap(memory, bytes + kDevicePage);
  }
}

Arena::~Arena() {
  if (bytes_ == 0) return;
  munmap(reserved_, bytes_ + kDevicePage);
  munmap(chunks_, chunk_bytes(bytes_));
}

std::optional<uint64_t> Arena::allocate(uint64_t bytes, bool managed) {
  if (bytes > std::numeric_limits<uint64_t>::max() - kGranule) return std::nullopt;
  const uint64_t requested = bytes;
  bytes = round_up(bytes, kGranule);
  const uint64_t alignment = requested < kLarge ? kGranule : kDevicePage;
  const std::lock_guard lock(mutex_);
  const auto it = std::find_if(free_.begin(), free_.end(), [&](const auto& hole) {
    const uint64_t skipped = round_up(hole.first, alignment) - hole.first;
    return hole.second >= skipped && hole.second - skipped >= bytes;
  });
  if (it == free_.end()) return std::nullopt;
  const auto [begin, hole] = *it;
  const uint64_t address = round_up(begin, alignment), skipped = address - begin;
  free_.erase(it);
  if (skipped != 0) free_.emplace(begin, skipped);
  if (hole > skipped + bytes) free_.emplace(address + bytes, hole - skipped - bytes);
  used_.emplace(address, Used{requested, bytes, managed});
  free_bytes_ -= bytes;
  return address;
}

bool Arena::free(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto it = used_.find(address);
  if (it == used_.end()) return false;
  uint64_t bytes = it->second.reserved;
  used_.erase(it);
  free_bytes_ += bytes;
  // Give whole pages back to the system.
  const uint64_t first = round_up(address, kPage), last = (address + bytes) / kPage * kPage;
  if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  // Join with the holes on both sides.
  auto next = free_.lower_bound(address);
  if (next != free_.end() && next->first == address + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == address) {
      before->second += bytes;
      return true;
    }
  }
  free_.emplace(address, bytes);
  return true;
}

std::optional<Arena::Block> Arena::find(uint64_t address) const {
  const std::lock_guard lock(mutex_);
  auto it = used_.upper_bound(address);
  if (it == used_.begin()) return std::nullopt;
  --it;
  if (address - it->first >= it->second.requested) return std::nullopt;
  return Block{it->first, it->second.requested, it->second.managed};
}

uint64_t Arena::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return free_bytes_;
}

}  // namespace simgpu
