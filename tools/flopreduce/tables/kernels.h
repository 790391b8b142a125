// Signatures and range paths of all traces, joined.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tables/id_map.h"

namespace flopinj::reduce {

// Distinct values by their index. One that has no room any more is kNoIndex.
template <typename Value, size_t kMost>
class InternTable {
 public:
  static constexpr size_t kMax = kMost;

  const Value& operator[](uint32_t index) const { return all_[index]; }
  size_t size() const { return all_.size(); }
  uint32_t intern(const Value& value) {
    const auto found = index_.find(value);
    if (found != index_.end()) return found->second;
    if (all_.size() >= kMost) return kNoIndex;
    const auto index = static_cast<uint32_t>(all_.size());
    all_.push_back(value);
    index_.emplace(value, index);
    return index;
  }

 protected:
  explicit InternTable(size_t unnamed) : all_(unnamed) {}

 private:
  struct Hash {
    size_t operator()(const Value& value) const { return value.hash(); }
  };
  std::vector<Value> all_;
  std::unordered_map<Value, uint32_t, Hash> index_;
};

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
  size_t hash() const;
};

struct SignatureTable : InternTable<Signature, size_t{1} << 20> {
  static constexpr uint32_t kUndefined = 0;  // of ids that no packet defined
  SignatureTable() : InternTable(1) {}
};

struct Path {
  uint32_t parent = 0;  // PathTable
  uint32_t name = 0;    // NamePool
  uint32_t domain = 0;  // NamePool
  uint32_t depth = 0;
  bool process_wide = false;

  bool operator==(const Path&) const = default;
  size_t hash() const;
};

// A tree of range names. A parent's index is always lower than its children's, so loops cannot
// exist and sums over subtrees are one pass from the end.
struct PathTable : InternTable<Path, size_t{1} << 18> {
  static constexpr uint32_t kRoot = 0;  // launches outside every range
  static constexpr uint32_t kLost = 1;  // under ids that no packet defined
  static constexpr uint32_t kMaxDepth = 256;
  using Path = reduce::Path;

  PathTable() : InternTable(2) {}
  // kNoIndex where the path is too deep, too.
  uint32_t intern(uint32_t parent, uint32_t name, uint32_t domain, bool process_wide) {
    const Path path{parent, name, domain, (*this)[parent].depth + 1, process_wide};
    return path.depth > kMaxDepth ? kNoIndex : InternTable::intern(path);
  }
};

}  // namespace flopinj::reduce
