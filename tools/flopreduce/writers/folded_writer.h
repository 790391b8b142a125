// Folded stacks, one line each: "range;range;kernel weight". flamegraph.pl, speedscope and inferno
// read them.
#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "report/report.h"

namespace flopinj::reduce {

enum class StackWeight : uint8_t { kFlop, kTime, kLaunches };  // FLOP, ns, 1

// Lines add up to the report's total. Stacks of weight 0, or whose weight is not known, have none.
// Names are printable(); a semicolon in one, which would end the frame, is written as \x3B.
void write_folded(std::ostream& out, const Report& report, StackWeight weight);

}  // namespace flopinj::reduce
