// How the energy counters of a trace's devices grew, as far as the trace has readings of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "flop_trace.pb.h"

namespace flopinj::reduce {

class EnergyReadings {
 public:
  // In the order of the trace.
  void add(const trace::Energy& message);
  // Millijoules that all devices together took between two times of the trace's clock: between
  // readings, in proportion. Nothing where a device has no reading before and after, or where the
  // readings next to both times leave more than a kMostOpen-th of it open.
  std::optional<uint64_t> between(uint64_t from_ns, uint64_t to_ns) const;

  // At most so many readings of a device are kept: of more, every second, fourth, ... one.
  static constexpr size_t kMost = 1U << 17;
  static constexpr uint64_t kMostOpen = 10;

 private:
  struct Reading {
    uint64_t ns = 0, millijoules = 0;
  };
  struct Around {
    Reading before, after;  // the same one where it is at that time
    double at(uint64_t ns) const;
  };
  struct OfDevice {
    std::vector<Reading> readings;  // in the order of time
    uint64_t every = 1, left_out = 0;

    void add(const Reading& reading);
    std::optional<Around> around(uint64_t ns) const;
  };
  std::map<uint32_t, OfDevice> devices_;
};

}  // namespace flopinj::reduce
