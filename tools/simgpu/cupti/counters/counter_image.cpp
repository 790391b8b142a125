#include "counters/counter_image.h"

#include <algorithm>
#include <cstring>

namespace simgpu::cupti {
namespace {

constexpr uint64_t kMagic = 0x31746164'75706773;  // "sgpudat1"

struct Header {
  uint64_t magic;
  uint64_t bytes;
  uint64_t capacity;
  uint64_t ranges;
  uint32_t chip;
  uint32_t counters;
};
struct Value {
  uint64_t collected;  // 0 or 1
  uint64_t value;
};

Header header_of(const uint8_t* memory) {
  Header header;
  std::memcpy(&header, memory, sizeof header);
  return header;
}

size_t counters_bytes(size_t counters) { return (counters * sizeof(Counter) + 7) / 8 * 8; }
size_t record_bytes(size_t counters) { return kMaxRangeName + 1 + counters * sizeof(Value); }

}  // namespace

size_t CounterImage::bytes_needed(size_t counters, size_t capacity) {
  return sizeof(Header) + counters_bytes(counters) + capacity * record_bytes(counters);
}

void CounterImage::initialize(std::span<uint8_t> memory, uint32_t chip,
                              std::span<const Counter> counters, size_t capacity) {
  const size_t bytes = bytes_needed(counters.size(), capacity);
  const Header header{kMagic, bytes, capacity, 0, chip, static_cast<uint32_t>(counters.size())};
  std::memset(memory.data(), 0, bytes);
  std::memcpy(memory.data(), &header, sizeof header);
  if (!counters.empty())
    std::memcpy(memory.data() + sizeof header, counters.data(), counters.size_bytes());
}

std::optional<CounterImage> CounterImage::open(std::span<uint8_t> memory) {
  if (memory.data() == nullptr || memory.size() < sizeof(Header)) return std::nullopt;
  const Header header = header_of(memory.data());
  if (header.magic != kMagic || header.bytes > memory.size() || header.counters > kCounters ||
      header.capacity > header.bytes / record_bytes(header.counters) ||
      header.ranges > header.capacity ||
      header.bytes != bytes_needed(header.counters, header.capacity))
    return std::nullopt;
  CounterImage image(memory.data());
  for (const Counter counter : image.counters())
    if (counter >= Counter::kCount) return std::nullopt;
  return image;
}

std::optional<CounterImage> CounterImage::open(std::span<const uint8_t> memory) {
  return open(std::span<uint8_t>(const_cast<uint8_t*>(memory.data()), memory.size()));
}

uint32_t CounterImage::chip() const { return header_of(memory_).chip; }
size_t CounterImage::ranges() const { return header_of(memory_).ranges; }
size_t CounterImage::capacity() const { return header_of(memory_).capacity; }

std::vector<Counter> CounterImage::counters() const {
  std::vector<Counter> result(header_of(memory_).counters);
  if (!result.empty())
    std::memcpy(result.data(), memory_ + sizeof(Header), result.size() * sizeof(Counter));
  return result;
}

uint8_t* CounterImage::record(size_t range) const {
  const size_t counters = header_of(memory_).counters;
  return memory_ + sizeof(Header) + counters_bytes(counters) + range * record_bytes(counters);
}

RangeValues CounterImage::read(size_t range) const {
  const uint8_t* from = record(range);
  RangeValues result;
  const auto* name = reinterpret_cast<const char*>(from);
  result.name.assign(name, strnlen(name, kMaxRangeName));
  from += kMaxRangeName + 1;
  for (const Counter counter : counters()) {
    Value value;
    std::memcpy(&value, from, sizeof value);
    from += sizeof value;
    result.values[static_cast<size_t>(counter)] = value.value;
    result.collected[static_cast<size_t>(counter)] = value.collected != 0;
  }
  return result;
}

bool CounterImage::store(const RangeValues& range, bool merge) {
  Header header = header_of(memory_);
  size_t at = header.ranges;
  if (merge)
    for (size_t i = 0; i < header.ranges; ++i)
      if (read(i).name == range.name) {
        at = i;
        break;
      }
  if (at == header.capacity) return false;
  uint8_t* to = record(at);
  if (at == header.ranges) {
    std::memcpy(to, range.name.data(), std::min(range.name.size(), kMaxRangeName));
    ++header.ranges;
    std::memcpy(memory_, &header, sizeof header);
  }
  to += kMaxRangeName + 1;
  for (const Counter counter : counters()) {
    const size_t index = static_cast<size_t>(counter);
    if (range.collected[index]) {
      const Value value{1, range.values[index]};
      std::memcpy(to, &value, sizeof value);
    }
    to += sizeof(Value);
  }
  return true;
}

std::string delimited_name(const std::string& name, std::string_view delimiter) {
  std::string result;
  for (const char c : name)
    if (c == kNestingMark)
      result += delimiter;
    else
      result += c;
  return result;
}

}  // namespace simgpu::cupti
