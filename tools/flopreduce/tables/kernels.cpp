#include "tables/kernels.h"

#include <functional>

namespace flopinj::reduce {
namespace {

size_t mix(size_t seed, uint64_t value) {
  seed ^= std::hash<uint64_t>{}(value) + 0x9E3779B97F4A7C15ULL + (seed << 6) + (seed >> 2);
  return seed * 0xFF51AFD7ED558CCDULL;
}

}  // namespace

const char* word_of(ParameterClass c) {
  switch (c) {
    case ParameterClass::kExact:
      return "exact";
    case ParameterClass::kUnknown:
      return "unknown";
    case ParameterClass::kMerged:
      return "merged";
    case ParameterClass::kUnspecified:
      break;
  }
  return "unspecified";
}

size_t Signature::hash() const {
  size_t h = mix(name, stable_hash);
  for (const auto& dims : {grid, block, cluster})
    for (const uint32_t d : dims) h = mix(h, d);
  h = mix(h, fingerprint ^ code_hash);
  return mix(h, dynamic_shared_bytes ^ (static_cast<uint64_t>(only_in_trace) << 32));
}

size_t Path::hash() const { return mix(mix(mix(parent, name), domain), process_wide ? 1 : 0); }

}  // namespace flopinj::reduce
