// What samples say of all launches of a kernel: whether they are all of them, and where they
// disagree, the FLOP of all and how far that may be off.
#pragma once
#include <span>
#include <vector>

#include "report/work_table.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// Samples of one signature on one device of the kind, and its launches there: outside of graphs,
// and in them. Each are of use where there are samples of such.
struct DeviceSamples {
  const SampleSet* samples = nullptr;
  uint64_t launches = 0, in_graphs = 0;
};

// Completes `result`, whose status, parts and counts are known: what its metrics count over all
// launches, and the error of that. Launches elsewhere (on devices, or in graphs, that were not
// sampled) are taken to do what the sampled ones do; where samples disagree, nothing says how far
// that is off.
void extrapolate(SignatureResult& result, std::span<const DeviceSamples> devices, bool merged);

}  // namespace flopinj::reduce
