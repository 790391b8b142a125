#include "driver/device.h"

#include <algorithm>
#include <cstring>

namespace simgpu {

Arena& Device::memory() {
  std::call_once(memory_once_, [this] { memory_ = std::make_unique<Arena>(chip_.memory_bytes); });
  return *memory_;
}

CUuuid Device::uuid() const {
  CUuuid id{};
  std::memcpy(id.bytes, "simgpu", 6);
  std::memcpy(id.bytes + 8, chip_.name, std::min<size_t>(std::strlen(chip_.name), 7));
  id.bytes[15] = static_cast<char>(ordinal_);
  return id;
}

}  // namespace simgpu
