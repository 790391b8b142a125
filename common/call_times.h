// When the program called for a launch, as LaunchBatch.called_before has it.
#pragma once
#include <cstdint>

namespace flopinj {

// Launches that began this long after the one before them on their stream, or later, have their
// time. For others it hardly matters: the stream was busy.
inline constexpr int64_t kLeastCalledGapNs = 2'000;
inline constexpr uint64_t kCallUnitNs = 128;

}  // namespace flopinj
