// A copy or a fill of memory that a device did, as the edge reports it.
#pragma once
#include <collector/identity/ids.h>

#include <array>
#include <cstdint>

namespace flopinj {

// As CopySums.Kind in the format.
enum class CopyKind : uint8_t {
  kOther,
  kHostToDevice,
  kDeviceToHost,
  kWithinDevice,
  kBetweenDevices,
  kHostToHost,
  kFill,
};

struct CopyTime {
  uint64_t start_ns = 0, end_ns = 0, bytes = 0;
  // That it is counted for, and of a copy between devices both ends; 0: none.
  std::array<DeviceId, 3> devices{};
  CopyKind kind = CopyKind::kOther;
  bool pageable = false;  // the host's memory is not pinned
};

}  // namespace flopinj
