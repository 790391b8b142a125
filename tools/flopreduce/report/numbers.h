// Numbers that the program gave to its ranges, such as tokens=4096, and the FLOP for each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/wide.h"

namespace flopinj::reduce {

struct TraceTables;
struct Report;

struct NumberReport {
  struct InRange {
    std::string range;  // its path; empty: given in no range
    uint64_t times = 0;
    u128 total = 0;
    bool outermost = true;  // no range around it was given the same number
    bool step = false;      // it is a training step
    // FLOP of what was launched in the range, of a training step on any thread / total.
    std::optional<double> flop_each;
    bool estimate = false, at_least = false;  // of flop_each
  };
  std::string name;  // raw bytes
  size_t processes = 0;
  u128 total = 0;                   // of the outermost ranges
  std::optional<double> flop_each;  // all executed FLOP / total; marked as Report::total is
  std::vector<InRange> ranges;
};

// `range_of`: by PathTable, the place in Report::ranges.
void add_numbers(const TraceTables& tables, const std::vector<uint32_t>& range_of, Report& report);
// What needs the FLOP of training steps.
void add_step_numbers(Report& report);

}  // namespace flopinj::reduce
