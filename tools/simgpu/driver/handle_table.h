// The live objects behind one kind of CUDA handle. A handle that is not in its table is invalid, so
// a program's stale or foreign handle gives an error code, never a wild access; an object in use
// outlives its destruction.
#pragma once
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace simgpu {

template <class Handle, class Object>
class HandleTable {
 public:
  static Handle handle_of(const Object* object) {
    return reinterpret_cast<Handle>(const_cast<Object*>(object));
  }

  Handle insert(std::shared_ptr<Object> object) {
    const Handle handle = handle_of(object.get());
    const std::unique_lock lock(mutex_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }

  // Null when the handle is not alive.
  std::shared_ptr<Object> find(Handle handle) const {
    const std::shared_lock lock(mutex_);
    const auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : it->second;
  }

  std::shared_ptr<Object> erase(Handle handle) {
    const std::unique_lock lock(mutex_);
    const auto it = objects_.find(handle);
    if (it == objects_.end()) return nullptr;
    std::shared_ptr<Object> object = std::move(it->second);
    objects_.erase(it);
    return object;
  }

  template <class Predicate>
  std::vector<std::shared_ptr<Object>> find_all(Predicate matches) const {
    std::vector<std::shared_ptr<Object>> found;
    const std::shared_lock lock(mutex_);
    for (const auto& [handle, object] : objects_)
      if (matches(*object)) found.push_back(object);
    return found;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<Handle, std::shared_ptr<Object>> objects_;
};

}  // namespace simgpu
