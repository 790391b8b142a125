// Green contexts: the device's primary context with some of its multiprocessors. How many makes no
// difference here: work runs and is timed as in the primary context, whose modules and memory it
// shares. What tools must know is simulated: the handle of a context of its own that is no other
// context's, and counters that mean nothing for kernels in such a context.
#include <algorithm>

#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/execution/stream.h"
#include "driver/observer.h"

namespace simgpu::api {
namespace {

constexpr unsigned int kSmsOfGroup = 8;  // the least that a partition has, since compute 9.0

// What a descriptor describes; it lives as long as the process, as CUDA has no call that ends it.
CUdevResourceDesc kDescriptor = reinterpret_cast<CUdevResourceDesc>(&kDescriptor);

CUdevResource sms(unsigned int count) {
  CUdevResource resource{};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm.smCount = count;
  return resource;
}

}  // namespace

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  const Device* found = Runtime::get().device(device);
  if (found == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = sms(static_cast<unsigned int>(found->chip().sm_count));
  return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* nbGroups,
                                     const CUdevResource* input, CUdevResource* remaining,
                                     unsigned int, unsigned int minCount) {
  if (nbGroups == nullptr || input == nullptr || input->type != CU_DEV_RESOURCE_TYPE_SM)
    return CUDA_ERROR_INVALID_VALUE;
  const unsigned int each = (minCount + kSmsOfGroup - 1) / kSmsOfGroup * kSmsOfGroup;
  if (each == 0 || each > input->sm.smCount) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned int most = input->sm.smCount / each;
  *nbGroups = result != nullptr ? std::min(*nbGroups, most) : most;
  for (unsigned int i = 0; result != nullptr && i < *nbGroups; ++i) result[i] = sms(each);
  if (remaining != nullptr) *remaining = sms(input->sm.smCount - *nbGroups * each);
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* phDesc, CUdevResource* resources,
                                   unsigned int nbResources) {
  if (phDesc == nullptr || resources == nullptr || nbResources == 0)
    return CUDA_ERROR_INVALID_VALUE;
  *phDesc = kDescriptor;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev,
                          unsigned int flags) {
  if (phCtx == nullptr || desc != kDescriptor || flags != CU_GREEN_CTX_DEFAULT_STREAM)
    return CUDA_ERROR_INVALID_VALUE;
  Runtime& runtime = Runtime::get();
  Device* const device = runtime.device(dev);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  auto green = std::make_shared<GreenContext>();
  green->id = runtime.next_id(runtime.context_ids);
  CUcontext primary = nullptr;
  retain_primary(*device, &primary);
  green->primary = runtime.contexts.find(primary);
  *phCtx = runtime.green_contexts.insert(std::move(green));
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  Runtime& runtime = Runtime::get();
  const auto green = runtime.green_contexts.erase(hCtx);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  runtime.converted_contexts.erase(HandleTable<CUcontext, GreenContext>::handle_of(green.get()));
  return release_primary(*green->primary->device, false);
}

CUresult cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx) {
  if (pContext == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Runtime& runtime = Runtime::get();
  const auto green = runtime.green_contexts.find(hCtx);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  *pContext = runtime.converted_contexts.insert(green);
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags, int) {
  if (phStream == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  Runtime& runtime = Runtime::get();
  const auto green = runtime.green_contexts.find(greenCtx);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  const auto stream = make_stream(green->primary, Stream::Kind::kCreated, flags);
  stream->green = greenCtx;
  *phStream = runtime.streams.insert(stream);
  tell(&Observer::stream_created, handle_of(green->primary), *phStream, stream->id);
  return CUDA_SUCCESS;
}

// The default stream is the green context's where that is current.
CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx* phCtx) {
  if (phCtx == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  const bool created = stream->kind == Stream::Kind::kCreated;
  *phCtx = created ? stream->green : green_of(current_handle());
  return CUDA_SUCCESS;
}

}  // namespace simgpu::api
