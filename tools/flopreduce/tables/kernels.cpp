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

size_t SignatureTable::Hash::operator()(const Signature& s) const {
  size_t h = mix(s.name, s.stable_hash);
  for (const auto& dims : {s.grid, s.block, s.cluster})
    for (const uint32_t d : dims) h = mix(h, d);
  h = mix(h, s.fingerprint ^ s.code_hash);
  return mix(h, s.dynamic_shared_bytes ^ (static_cast<uint64_t>(s.only_in_trace) << 32));
}

uint32_t SignatureTable::intern(const Signature& signature) {
  const auto found = index_.find(signature);
  if (found != index_.end()) return found->second;
  if (all_.size() >= kMax) return kNoIndex;
  const auto index = static_cast<uint32_t>(all_.size());
  all_.push_back(signature);
  index_.emplace(signature, index);
  return index;
}

PathTable::PathTable() { all_.resize(2); }

size_t PathTable::Hash::operator()(const Path& p) const {
  return mix(mix(mix(p.parent, p.name), p.domain), p.process_wide ? 1 : 0);
}

uint32_t PathTable::intern(uint32_t parent, uint32_t name, uint32_t domain, bool process_wide) {
  const Path path{parent, name, domain, all_[parent].depth + 1, process_wide};
  if (path.depth > kMaxDepth) return kNoIndex;
  const auto found = index_.find(path);
  if (found != index_.end()) return found->second;
  if (all_.size() >= kMax) return kNoIndex;
  const auto index = static_cast<uint32_t>(all_.size());
  all_.push_back(path);
  index_.emplace(path, index);
  return index;
}

}  // namespace flopinj::reduce
