#include <injector/handles/kernel_handles.h>

namespace flopinj {

bool KernelHandles::learn(const ModuleCall& call) {
  if (call.handles == nullptr) return true;
  const MutexLock lock(mutex_);
  const bool room = given_.size() < kMost;
  if (!room) given_.clear();
  Given given{call.owner, call.name != nullptr ? call.name : ""};
  if (call.kernel != nullptr) {
    const auto kernel = given_.find(reinterpret_cast<CUfunction>(call.kernel));
    if (kernel != given_.end()) given = kernel->second;
    // What is seen to be loaded for the one is the code of both.
    if (given.owner == nullptr) given.owner = call.kernel;
  }
  for (size_t i = 0; i < call.count; ++i) {
    const CUfunction handle = call.handle(i);
    if (handle == nullptr) continue;
    if (given.owner != nullptr)
      given_.insert_or_assign(handle, given);  // it may have come back as another kernel's
    else
      given_[handle].name = given.name;
  }
  return room;
}

KernelHandles::Given KernelHandles::find(CUfunction handle) const {
  const MutexLock lock(mutex_);
  const auto known = given_.find(handle);
  return known != given_.end() ? known->second : Given{};
}

}  // namespace flopinj
