// Signatures and range paths of all traces, joined.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tables/id_map.h"

namespace flopinj::reduce {

enum class ParameterClass : uint8_t { kUnspecified, kExact, kUnknown, kMerged };
const char* word_of(ParameterClass);  // "exact"

// What two processes must agree on for their launches to be the same work. All of it is compared,
// not only the stable hash: unlike launches are never merged because two hashes met.
struct Signature {
  uint32_t name = 0;  // NamePool: mangled kernel name
  std::array<uint32_t, 3> grid{}, block{}, cluster{};
  uint32_t dynamic_shared_bytes = 0;
  uint64_t fingerprint = 0;
  uint64_t code_hash = 0;  // of the function; 0: not known, then registers and memory must do
  uint32_t registers_per_thread = 0, static_shared_bytes = 0;
  uint64_t stable_hash = 0;
  ParameterClass parameter_class = ParameterClass::kUnspecified;
  uint32_t only_in_trace = kNoIndex;  // set where there is no stable hash to join by

  bool operator==(const Signature&) const = default;
};

class SignatureTable {
 public:
  static constexpr uint32_t kUndefined = 0;  // of ids that no packet defined
  static constexpr size_t kMax = 1U << 20;

  SignatureTable() : all_(1) {}
  // kNoIndex when the table is full.
  uint32_t intern(const Signature& signature);
  const Signature& operator[](uint32_t index) const { return all_[index]; }
  size_t size() const { return all_.size(); }

 private:
  struct Hash {
    size_t operator()(const Signature& s) const;
  };
  std::vector<Signature> all_;
  std::unordered_map<Signature, uint32_t, Hash> index_;
};

// A tree of range names. A parent's index is always lower than its children's, so loops cannot
// exist and sums over subtrees are one pass from the end.
class PathTable {
 public:
  static constexpr uint32_t kRoot = 0;  // launches outside every range
  static constexpr uint32_t kLost = 1;  // under ids that no packet defined
  static constexpr uint32_t kMaxDepth = 256;
  static constexpr size_t kMax = 1U << 18;

  struct Path {
    uint32_t parent = kRoot;
    uint32_t name = 0;    // NamePool
    uint32_t domain = 0;  // NamePool
    uint32_t depth = 0;
    bool process_wide = false;
    bool operator==(const Path&) const = default;
  };

  PathTable();
  // kNoIndex when the table is full or the path too deep.
  uint32_t intern(uint32_t parent, uint32_t name, uint32_t domain, bool process_wide);
  const Path& operator[](uint32_t index) const { return all_[index]; }
  size_t size() const { return all_.size(); }

 private:
  struct Hash {
    size_t operator()(const Path& p) const;
  };
  std::vector<Path> all_;
  std::unordered_map<Path, uint32_t, Hash> index_;
};

}  // namespace flopinj::reduce
