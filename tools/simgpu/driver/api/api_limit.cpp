// Limits and settings of a context.
#include "driver/api/api.h"
#include "driver/context.h"

namespace simgpu::api {
namespace {

// Null: there is no such limit.
std::atomic<size_t>* limit_of(Context& context, CUlimit limit) {
  return limit >= 0 && limit <= CU_LIMIT_MALLOC_HEAP_SIZE ? &context.limits[limit] : nullptr;
}

}  // namespace

CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
  if (pvalue == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto context = current_context();
  if (!context) return context.error;
  const std::atomic<size_t>* const kept = limit_of(*context.object, limit);
  if (kept == nullptr) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *pvalue = *kept;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  const auto context = current_context();
  if (!context) return context.error;
  std::atomic<size_t>* const kept = limit_of(*context.object, limit);
  if (kept == nullptr) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *kept = value;
  return CUDA_SUCCESS;
}

// There are no caches.
CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
  if (pconfig == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pconfig = CU_FUNC_CACHE_PREFER_NONE;
  return current_context().error;
}
CUresult cuCtxSetCacheConfig(CUfunc_cache) { return current_context().error; }

// Flags say how the host waits, which is the same for all.
CUresult cuCtxGetFlags(unsigned int* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = 0;
  return current_context().error;
}
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int) {
  return Runtime::get().device(dev) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!find_context(ctx != nullptr ? ctx : current_handle())) return CUDA_ERROR_INVALID_CONTEXT;
  constexpr unsigned int kVersion = 3020;  // since contexts belong to a process
  *version = kVersion;
  return CUDA_SUCCESS;
}

}  // namespace simgpu::api
