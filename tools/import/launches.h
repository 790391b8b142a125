// The launches of a time line, each with its call.
#pragma once
#include <import/timeline.h>

#include <vector>

namespace flopinj::import {

struct Launch {
  const Kernel* kernel;
  const Call* call;  // null: the file has none
  int64_t at_ns;     // of its call, else of its start
};
// In the order of their calls; of one call (a graph's) in the order in which they ran. Sorts the
// calls.
std::vector<Launch> launches_in_order(Timeline&);

}  // namespace flopinj::import
