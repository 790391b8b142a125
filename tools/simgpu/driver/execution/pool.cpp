#include "driver/execution/pool.h"

#include <algorithm>
#include <map>

#include "driver/execution/memory.h"

namespace simgpu {
namespace {

struct Piece {
  std::shared_ptr<Pool> pool;
  uint64_t bytes = 0;
};

struct Pools {
  std::mutex mutex;
  std::map<CUdeviceptr, Piece> pieces;
  std::map<const Device*, std::shared_ptr<Pool>> defaults, current;
};
Pools& pools() {
  static auto* const made = new Pools;
  return *made;
}

}  // namespace

std::shared_ptr<Pool> default_pool(Device& device) {
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<Pool>& pool = all.defaults[&device];
  if (!pool) {
    pool = std::make_shared<Pool>();
    pool->device = &device;
    pool->own = false;
    Runtime::get().pools.insert(pool);
  }
  return pool;
}

std::shared_ptr<Pool> current_pool(Device& device) {
  Pools& all = pools();
  {
    const std::lock_guard lock(all.mutex);
    const auto it = all.current.find(&device);
    if (it != all.current.end()) return it->second;
  }
  return default_pool(device);
}

void set_current_pool(Device& device, const std::shared_ptr<Pool>& pool) {
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  all.current[&device] = pool;
}

CUresult allocate_from(const std::shared_ptr<Pool>& pool, uint64_t bytes, CUdeviceptr* address) {
  const CUresult error = allocate_device(*pool->device, bytes, address);
  if (error != CUDA_SUCCESS) return error;
  {
    Pools& all = pools();
    const std::lock_guard lock(all.mutex);
    all.pieces[*address] = {pool, bytes};
  }
  const std::lock_guard lock(pool->mutex);
  pool->used += bytes;
  pool->most = std::max(pool->most, pool->used);
  return CUDA_SUCCESS;
}

void left_pool(CUdeviceptr address) {
  Pools& all = pools();
  Piece piece;
  {
    const std::lock_guard lock(all.mutex);
    const auto it = all.pieces.find(address);
    if (it == all.pieces.end()) return;
    piece = std::move(it->second);
    all.pieces.erase(it);
  }
  const std::lock_guard lock(piece.pool->mutex);
  piece.pool->used -= piece.bytes;
}

std::shared_ptr<Pool> pool_of(CUdeviceptr address) {
  Pools& all = pools();
  const std::lock_guard lock(all.mutex);
  const auto it = all.pieces.find(address);
  return it == all.pieces.end() ? nullptr : it->second.pool;
}

CUresult free_in_stream(const std::shared_ptr<Stream>& stream, CUdeviceptr address) {
  Device* const device = Runtime::get().device_of_address(address);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto block = device->memory().find(address);
  if (!block || block->address != address) return CUDA_ERROR_INVALID_VALUE;
  left_pool(address);
  return give(stream, [device, address] {
    return device->memory().free(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace simgpu
