// A thread's own map from (function, shape, fingerprint) to signature: the steady state of the
// launch path, without locks and without allocation. Direct-mapped in two ways; a miss goes to the
// shared SignatureTable.
#pragma once
#include <collector/signature_table.h>

#include <array>
#include <cstdint>
#include <memory>

namespace flopinj {

class SignatureCache {
 public:
  // Null on a miss.
  const Signature* find(const KernelFunction& function, const LaunchShape& shape,
                        uint64_t fingerprint) const;
  void insert(const KernelFunction& function, const LaunchShape& shape, uint64_t fingerprint,
              const Signature*);

 private:
  static constexpr size_t kSlots = 4'096;
  struct Slot {
    const KernelFunction* function = nullptr;
    uint64_t fingerprint = 0;
    LaunchShape shape;
    const Signature* signature = nullptr;
  };
  static size_t slot_of(const KernelFunction&, const LaunchShape&, uint64_t fingerprint);
  std::unique_ptr<std::array<Slot, kSlots>> slots_;  // allocated at the first insert
};

}  // namespace flopinj
