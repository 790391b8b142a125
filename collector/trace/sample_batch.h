// Counters that one measurement window has read.
#pragma once
#include <collector/identity/ids.h>

#include <cstdint>
#include <vector>

namespace flopinj {

struct SampleBatch {
  DeviceId device;
  GroupId group;
  uint32_t window = 0;
  std::vector<SignatureId> signatures;
  std::vector<PathId> paths;
  std::vector<uint32_t> correlations;  // parallel to signatures: finds the ordinals
  std::vector<uint64_t> ordinals;      // parallel to signatures, or empty: not written
  std::vector<double> values;          // signatures.size() x metrics, sample by sample
};

}  // namespace flopinj
