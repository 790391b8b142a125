// A thread's own map from (function, shape, fingerprint) to signature: the steady state of the
// launch path, without locks and without allocation. Two-way associative, 64 KiB; a miss goes to
// the shared SignatureTable.
//
// A hit is a full comparison: function and shape with those of the signature itself, which the
// launch path reads next anyway, and the fingerprint with the slot's, since the signature of a
// merged class does not carry it.
#pragma once
#include <collector/base/hash.h>
#include <collector/base/zero_pages.h>
#include <collector/identity/signature_table.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace flopinj {

class SignatureCache {
 public:
  SignatureCache() = default;
  SignatureCache(SignatureCache&&) noexcept = default;
  SignatureCache& operator=(SignatureCache&&) noexcept = default;
  bool empty() const noexcept { return !sets_; }

  // Null on a miss.
  const Signature* find(const KernelFunction& function, const LaunchShape& shape,
                        uint64_t fingerprint) const noexcept {
    if (!sets_) return nullptr;
    const Set& set = (*sets_)[set_of(function, shape, fingerprint)];
    for (const Slot& slot : set)
      if (matches(slot, function, shape, fingerprint)) return slot.signature;
    return nullptr;
  }

  // `signature` is what intern_signature() gave for this key. Overflow signatures are not kept. A
  // merged class never drives out an exact signature: where fingerprints never repeat, keeping them
  // would empty the cache.
  void insert(const KernelFunction& function, const LaunchShape& shape, uint64_t fingerprint,
              const Signature* signature) noexcept;

 private:
  static constexpr unsigned kSetBits = 11;
  static constexpr size_t kSets = size_t{1} << kSetBits;
  struct Slot {
    const Signature* signature = nullptr;
    uint64_t fingerprint = 0;
  };
  using Set = std::array<Slot, 2>;  // the first is the one inserted last

  static bool matches(const Slot& slot, const KernelFunction& function, const LaunchShape& shape,
                      uint64_t fingerprint) noexcept {
    return slot.signature != nullptr && slot.fingerprint == fingerprint &&
           slot.signature->function == &function && slot.signature->shape == shape;
  }
  static size_t set_of(const KernelFunction& function, const LaunchShape& shape,
                       uint64_t fingerprint) noexcept {
    // Only speed depends on the quality of this mix. The fingerprint is well mixed already.
    uint64_t h = hash_mix(fingerprint, hash_pair(shape.grid[0], shape.grid[1]));
    h = hash_mix(h, hash_pair(shape.block[0], shape.grid[2]) ^
                        hash_pair(shape.dynamic_shared_bytes, shape.block[1]));
    h = hash_mix(h, function.id.value);
    return h >> (64 - kSetBits);
  }

  ZeroPages<std::array<Set, kSets>> sets_;  // made at the first insert
};

}  // namespace flopinj
