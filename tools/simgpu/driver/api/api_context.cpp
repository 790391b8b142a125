// Primary and created contexts, the stack of current ones.
#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/graphs/capture.h"
#include "driver/observer.h"

namespace simgpu::api {
namespace {

bool valid_flags(unsigned int flags) {
  return (flags & ~static_cast<unsigned int>(CU_CTX_FLAGS_MASK)) == 0;
}

CUresult create(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  if (pctx == nullptr || !valid_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  Device* device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *pctx = handle_of(create_context(*device, false));
  push_context(*pctx);
  return CUDA_SUCCESS;
}

CUresult synchronize_and_tell(const std::shared_ptr<Context>& context) {
  if (const CUresult error = refuse_in_context_capture(*context); error != CUDA_SUCCESS)
    return error;
  const CUresult failure = synchronize_context(*context);
  tell(&Observer::synchronized, handle_of(context), nullptr);
  return failure;
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device* device = Runtime::get().device(dev);
  return device != nullptr ? retain_primary(*device, pctx) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  Device* device = Runtime::get().device(dev);
  return device != nullptr ? release_primary(*device, false) : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return api::cuDevicePrimaryCtxRelease_v2(dev); }

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  Device* device = Runtime::get().device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device::Primary& primary = device->primary();
  const std::lock_guard lock(primary.mutex);
  *flags = 0;
  *active = primary.context ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return create(pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams,
                        unsigned int flags, CUdevice dev) {
  if (numParams != 0 || paramsArray != nullptr) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags,
                        CUdevice dev) {
  if (ctxCreateParams != nullptr) {
    if (ctxCreateParams->numExecAffinityParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (ctxCreateParams->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  }
  return create(pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  const auto context = Runtime::get().contexts.find(ctx);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  destroy_context(context);
  if (current_handle() == ctx) pop_context();
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  if (!find_context(ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  return push_context(ctx) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
  const CUcontext popped = pop_context();
  if (popped == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (pctx != nullptr) *pctx = popped;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
  if (ctx != nullptr && !find_context(ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  set_context(ctx);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pctx = current_handle();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto context = current_or_failed_context();
  if (!context) return context.error;
  *device = context->device->ordinal();
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  const auto context = current_context();
  return context ? synchronize_and_tell(context.object) : context.error;
}

// What a profiler makes of them is its own business.
CUresult cuProfilerStart() { return current_context().error; }
CUresult cuProfilerStop() { return current_context().error; }

#if CUDA_VERSION >= 13000
CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto context = find_context(ctx != nullptr ? ctx : current_handle());
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device->ordinal();
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx) {
  const auto context = find_context(ctx != nullptr ? ctx : current_handle());
  return context ? synchronize_and_tell(context) : CUDA_ERROR_INVALID_CONTEXT;
}
#endif

}  // namespace simgpu::api
