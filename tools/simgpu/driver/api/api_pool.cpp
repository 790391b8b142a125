// Memory pools, and allocation in the order of a stream.
#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/execution/pool.h"
#include "driver/graphs/capture.h"

namespace simgpu::api {
namespace {

CUmemoryPool handle(const std::shared_ptr<Pool>& pool) {
  return HandleTable<CUmemoryPool, Pool>::handle_of(pool.get());
}

CUresult allocate(CUdeviceptr* dptr, size_t bytes, const std::shared_ptr<Pool>& pool,
                  CUstream hStream) {
  if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  // There are no memory nodes in graphs.
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  return allocate_from(pool != nullptr ? pool : current_pool(*stream->context->device), bytes,
                       dptr);
}

// What an attribute is kept in; null where it is worked out.
uint64_t* kept(Pool& pool, CUmemPool_attribute attribute, bool& is_int) {
  is_int = attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
  if (is_int && attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES)
    return &pool.reuse[static_cast<size_t>(attribute) - 1];
  return attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? &pool.release_threshold : nullptr;
}

bool is_device(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
         Runtime::get().device(location.id) != nullptr;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return allocate(dptr, bytesize, nullptr, hStream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                 CUstream hStream) {
  const auto found = Runtime::get().pools.find(pool);
  return found ? allocate(dptr, bytesize, found, hStream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  return dptr == 0 ? CUDA_SUCCESS : free_in_stream(stream.object, dptr);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  if (pool_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device* const device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *pool_out = handle(default_pool(*device));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device* const device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *pool = handle(current_pool(*device));
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  Device* const device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const auto found = Runtime::get().pools.find(pool);
  if (!found || found->device != device) return CUDA_ERROR_INVALID_VALUE;
  set_current_pool(*device, found);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  if (pool == nullptr || poolProps == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || !is_device(poolProps->location))
    return CUDA_ERROR_INVALID_VALUE;
  if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  const auto made = std::make_shared<Pool>();
  made->device = Runtime::get().device(poolProps->location.id);
  *pool = Runtime::get().pools.insert(made);
  return CUDA_SUCCESS;
}

// Memory that came from it stays until it is freed.
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  const auto found = Runtime::get().pools.find(pool);
  if (!found || !found->own) return CUDA_ERROR_INVALID_VALUE;
  if (current_pool(*found->device) == found)
    set_current_pool(*found->device, default_pool(*found->device));
  Runtime::get().pools.erase(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  return Runtime::get().pools.find(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  const auto found = Runtime::get().pools.find(pool);
  if (!found || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(found->mutex);
  bool is_int = false;
  if (uint64_t* const to = kept(*found, attr, is_int); to != nullptr) {
    *to = is_int ? static_cast<uint64_t>(*static_cast<int*>(value) != 0)
                 : *static_cast<cuuint64_t*>(value);
    return CUDA_SUCCESS;
  }
  const bool is_high =
      attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH || attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
  if (!is_high || *static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  found->most = found->used;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  const auto found = Runtime::get().pools.find(pool);
  if (!found || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(found->mutex);
  bool is_int = false;
  if (const uint64_t* const from = kept(*found, attr, is_int); from != nullptr) {
    if (is_int)
      *static_cast<int*>(value) = static_cast<int>(*from);
    else
      *static_cast<cuuint64_t*>(value) = *from;
    return CUDA_SUCCESS;
  }
  switch (attr) {
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *static_cast<cuuint64_t*>(value) = found->used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *static_cast<cuuint64_t*>(value) = found->most;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Every device can use the memory of all: it is the process's.
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  if (!Runtime::get().pools.find(pool) || (map == nullptr && count != 0))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i)
    if (!is_device(map[i].location)) return CUDA_ERROR_INVALID_DEVICE;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool memPool,
                            CUmemLocation* location) {
  if (flags == nullptr || location == nullptr || !Runtime::get().pools.find(memPool) ||
      !is_device(*location))
    return CUDA_ERROR_INVALID_VALUE;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

}  // namespace simgpu::api
