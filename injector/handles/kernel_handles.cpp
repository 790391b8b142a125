#include <injector/handles/kernel_handles.h>

namespace flopinj {

bool KernelHandles::learn(const GivenHandles& given) {
  const MutexLock lock(mutex_);
  const bool room = kinds_.size() < kMost;
  if (!room) kinds_.clear();
  for (size_t i = 0; i < given.count; ++i) {
    if (given.functions != nullptr)
      learn(given.functions[i], Kind::kFunction, given.repeated);
    else if (given.kernels != nullptr)
      learn(reinterpret_cast<CUfunction>(given.kernels[i]), Kind::kKernel, given.repeated);
  }
  return room;
}

void KernelHandles::learn(CUfunction handle, Kind kind, bool repeated) {
  if (handle == nullptr) return;
  if (repeated)
    kinds_.try_emplace(handle, kind);
  else
    kinds_.insert_or_assign(handle, kind);
}

KernelHandles::Kind KernelHandles::kind(CUfunction handle) const {
  const MutexLock lock(mutex_);
  const auto known = kinds_.find(handle);
  return known != kinds_.end() ? known->second : Kind::kUnknown;
}

}  // namespace flopinj
