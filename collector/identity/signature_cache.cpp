#include <collector/identity/signature_cache.h>

namespace flopinj {

void SignatureCache::insert(const KernelFunction& function, const LaunchShape& shape,
                            uint64_t fingerprint, const Signature* signature) noexcept {
  if (signature == nullptr || is_overflow(*signature)) return;
  if (!sets_.make()) return;
  Set& set = (*sets_)[set_of(function, shape, fingerprint)];
  for (Slot& slot : set) {
    if (!matches(slot, function, shape, fingerprint)) continue;
    slot.signature = signature;
    return;
  }
  const Slot fresh{signature, fingerprint};
  if (signature->parameter_class == ParameterClass::kMerged) {
    for (Slot& slot : set) {
      const bool free =
          slot.signature == nullptr || slot.signature->parameter_class == ParameterClass::kMerged;
      if (!free) continue;
      slot = fresh;
      return;
    }
    return;
  }
  set[1] = set[0];
  set[0] = fresh;
}

}  // namespace flopinj
