// The counter data image: memory of the client that DecodeData fills with one record per range.
//
// Layout: header, the counters it holds, then `capacity` range records of a name and one value per
// counter. A pass that has not been collected leaves its counters marked as missing, so that they
// are not read as 0.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "counters/counters.h"

namespace simgpu::cupti {

inline constexpr size_t kMaxRangeName = 127;

struct RangeValues {
  std::string name;
  CounterValues values{};
  std::array<bool, kCounters> collected{};
};

class CounterImage {
 public:
  static size_t bytes_needed(size_t counters, size_t capacity);
  // Writes an empty image. `memory` must have bytes_needed(...).
  static void initialize(std::span<uint8_t> memory, uint32_t chip,
                         std::span<const Counter> counters, size_t capacity);
  // A view of an initialized image; nothing when the bytes are not one. The memory must outlive the
  // view.
  static std::optional<CounterImage> open(std::span<uint8_t> memory);
  static std::optional<CounterImage> open(std::span<const uint8_t> memory);  // only for reading

  uint32_t chip() const;
  size_t ranges() const;
  size_t capacity() const;
  std::vector<Counter> counters() const;
  RangeValues read(size_t range) const;  // range < ranges()

  // Adds the collected values to the range of that name when `merge` and there is one, else to a
  // new range. False when the image is full.
  bool store(const RangeValues& range, bool merge);

 private:
  explicit CounterImage(uint8_t* memory) : memory_(memory) {}
  uint8_t* record(size_t range) const;

  uint8_t* memory_;
};

// Between the names of nested ranges, until the client gives a delimiter of its own.
inline constexpr char kNestingMark = '\x1f';
std::string delimited_name(const std::string& name, std::string_view delimiter);

}  // namespace simgpu::cupti
