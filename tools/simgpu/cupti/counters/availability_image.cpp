#include "counters/availability_image.h"

#include <cstring>
#include <span>

#include "counters/checksum.h"

namespace simgpu::cupti {
namespace {

constexpr uint64_t kImageMagic = 0x316c7661'75706773;  // "sgpuavl1"

struct Image {
  uint64_t magic;
  uint64_t checksum;  // of everything after this field
  uint64_t chip, reserved;
  uint8_t lacking[kCounters];
};
constexpr size_t kSummed = offsetof(Image, chip);
static_assert(offsetof(Image, lacking) + kCounters == kAvailabilityBytes);

uint64_t sum_of(const uint8_t* bytes) {
  return checksum(std::span(bytes, kAvailabilityBytes).subspan(kSummed));
}

}  // namespace

std::vector<uint8_t> write_availability_image(const Availability& availability) {
  Image image{kImageMagic, 0, availability.chip, 0, {}};
  for (size_t i = 0; i < kCounters; ++i) image.lacking[i] = availability.lacking.test(i) ? 1 : 0;
  std::vector<uint8_t> bytes(kAvailabilityBytes);
  std::memcpy(bytes.data(), &image, bytes.size());
  image.checksum = sum_of(bytes.data());
  std::memcpy(bytes.data(), &image, bytes.size());
  return bytes;
}

std::optional<Availability> read_availability_image(const uint8_t* bytes) {
  Image image{};
  std::memcpy(&image, bytes, kAvailabilityBytes);
  if (image.magic != kImageMagic || image.checksum != sum_of(bytes)) return std::nullopt;
  Availability availability{static_cast<uint32_t>(image.chip), {}};
  for (size_t i = 0; i < kCounters; ++i) availability.lacking.set(i, image.lacking[i] != 0);
  return availability;
}

}  // namespace simgpu::cupti
