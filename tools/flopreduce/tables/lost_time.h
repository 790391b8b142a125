// Where the time of devices went: the lines from all of it at peak down to the FLOP of the model.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "support/wide.h"

namespace flopinj::reduce {

// In the order in which they are taken off: bounds and overlaps are read by it.
enum class LostLine : uint8_t {
  kIdleStartEnd,
  kIdleCopies,
  kIdleHostLate,
  kIdleQueued,
  kIdleBetweenSteps,
  kIdleLongGaps,
  kIdleShortGaps,
  kCommunication,
  kUncounted,
  kInteger,
  kOtherMemory,
  kOtherBelowRoof,
  kMatrixMemory,
  kMatrixBlocks,
  kMatrixBelowRoof,
  kProfiler,
  // The rest is work: time that its FLOP take at peak.
  kRecompute,
  kPadding,
  kOtherFlop,
  kModel,
};
inline constexpr size_t kLostLines = 20;
constexpr size_t place_of(LostLine line) { return static_cast<size_t>(line); }

// Lines of one subject, in femtoseconds of device time: a launch's work at peak is less than a
// nanosecond as often as not. Sums of integers do not depend on their order.
inline constexpr uint64_t kFsInNs = 1'000'000;
using LostFs = std::array<u128, kLostLines>;

// An instant belongs to the first class of which a kernel runs.
enum class KernelClass : uint8_t {
  kMatrix,         // products
  kInteger,        // of the tensor cores, but no FLOP: OP
  kUncounted,      // without a FLOP count
  kOther,          // with one
  kCommunication,  // costs what nothing else hides
  kSlowed,         // no kernel: what one took longer because counters were read
};
// Classes with work.
inline constexpr size_t kWorkClasses = 5;

// What time went to, before work beyond the time that it was done in has its place.
struct LostTime {
  LostFs fs{};
  // Of the idle lines without a known cause: beside launches made while counters were read.
  std::array<u128, 3> beside_fs{};

  u128& operator[](LostLine line) { return fs[place_of(line)]; }
  const u128& operator[](LostLine line) const { return fs[place_of(line)]; }
  void add(const LostTime& o) {
    for (size_t i = 0; i < fs.size(); ++i) add_saturating(fs[i], o.fs[i]);
    for (size_t i = 0; i < beside_fs.size(); ++i) add_saturating(beside_fs[i], o.beside_fs[i]);
  }
};
// The place of such a line in LostTime::beside_fs.
constexpr bool is_beside(LostLine line) {
  return line >= LostLine::kIdleBetweenSteps && line <= LostLine::kIdleShortGaps;
}
constexpr size_t place_beside(LostLine line) {
  return place_of(line) - place_of(LostLine::kIdleBetweenSteps);
}

}  // namespace flopinj::reduce
