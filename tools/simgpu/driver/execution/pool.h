// Pools of device memory, of which work in a stream allocates. Memory is a device's as all other is
// (arena.h): a pool counts what came from it, and keeps nothing that was freed.
#pragma once
#include <array>

#include "driver/execution/stream.h"

namespace simgpu {

struct Pool {
  Device* device = nullptr;
  bool own = true;  // false: a device's default pool
  std::mutex mutex;
  uint64_t used = 0, most = 0;             // bytes
  std::array<uint64_t, 3> reuse{1, 1, 1};  // attributes that are kept, and change nothing
  uint64_t release_threshold = 0;
};

// The device's own, and the one that allocations without a pool come from.
std::shared_ptr<Pool> default_pool(Device& device);
std::shared_ptr<Pool> current_pool(Device& device);
void set_current_pool(Device& device, const std::shared_ptr<Pool>& pool);

// Allocates at once, which every order of streams allows.
CUresult allocate_from(const std::shared_ptr<Pool>& pool, uint64_t bytes, CUdeviceptr* address);
// Frees when the stream's work before it is done.
CUresult free_in_stream(const std::shared_ptr<Stream>& stream, CUdeviceptr address);
// Memory that may be a pool's was freed otherwise.
void left_pool(CUdeviceptr address);
// The pool that memory came from; null where it came from none.
std::shared_ptr<Pool> pool_of(CUdeviceptr address);

}  // namespace simgpu
