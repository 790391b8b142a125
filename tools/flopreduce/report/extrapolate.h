// The FLOP of all launches of a kernel whose samples disagree, and how far that may be off.
#pragma once
#include <span>
#include <vector>

#include "model/model.h"
#include "report/work_table.h"

namespace flopinj::reduce {

// Samples of one signature on one device of the kind, and its launches there.
struct DeviceSamples {
  const SampleSet* samples = nullptr;
  uint64_t launches = 0;
};

// Completes `result`, whose status, parts and counts are known: what its metrics count over all
// launches, and the error of that. Devices that were not sampled are taken to do what the sampled
// ones do.
void extrapolate(SignatureResult& result, std::span<const DeviceSamples> devices, bool merged);

}  // namespace flopinj::reduce
