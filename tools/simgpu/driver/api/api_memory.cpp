// Allocation and what is known about pointers.
#include <cstring>

#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/execution/memory.h"
#include "driver/execution/pool.h"
#include "driver/graphs/capture.h"

namespace simgpu::api {
namespace {

// Allocation is forbidden in a capture that is not relaxed.
CUresult allocate(CUdeviceptr* dptr, size_t bytes, bool managed = false) {
  const auto context = current_context();
  if (!context) return context.error;
  if (const CUresult error = refuse_unsafe_call(); error != CUDA_SUCCESS) return error;
  return allocate_device(*context->device, bytes, dptr, managed);
}

// Where managed memory is to be, or how it will be used: it has one place here.
CUresult hint(CUdeviceptr address, size_t bytes) {
  const Device* const device = Runtime::get().device_of_address(address);
  const auto block =
      device != nullptr ? const_cast<Device*>(device)->memory().find(address) : std::nullopt;
  const bool whole =
      block && block->managed && bytes != 0 && bytes <= block->bytes - (address - block->address);
  return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUcontext context_on(Device& device) {
  const auto context = current_context();
  if (context && context->device == &device) return current_handle();
  const std::lock_guard lock(device.primary().mutex);
  return HandleTable<CUcontext, Context>::handle_of(device.primary().context.get());
}

template <class T>
CUresult put(void* data, T value) {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto context = current_context();
  if (!context) return context.error;
  *free = context->device->memory().free_bytes();
  *total = context->device->chip().memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) { return allocate(dptr, bytesize); }

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  return allocate(dptr, bytesize, true);
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise, CUdevice) {
  return hint(devPtr, count);
}
CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise, CUmemLocation) {
  return hint(devPtr, count);
}
CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice, CUstream) {
  return hint(devPtr, count);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation, unsigned int,
                               CUstream) {
  return hint(devPtr, count);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  constexpr size_t kPitch = 512;
  if (pPitch == nullptr || WidthInBytes == 0 || Height == 0 ||
      (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
    return CUDA_ERROR_INVALID_VALUE;
  const size_t pitch = (WidthInBytes + kPitch - 1) / kPitch * kPitch;
  if (pitch < WidthInBytes || Height > SIZE_MAX / pitch) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = allocate(dptr, pitch * Height);
  if (result == CUDA_SUCCESS) *pPitch = pitch;
  return result;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  const auto context = current_context();
  if (!context) return context.error;
  Device* const device = Runtime::get().device_of_address(dptr);
  const auto block = device != nullptr ? device->memory().find(dptr) : std::nullopt;
  if (!block) return CUDA_ERROR_NOT_FOUND;
  if (pbase != nullptr) *pbase = block->address;
  if (psize != nullptr) *psize = block->bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
  const auto context = current_context();
  if (!context) return context.error;
  if (const CUresult error = refuse_unsafe_call(); error != CUDA_SUCCESS) return error;
  left_pool(dptr);
  return free_device(dptr);
}

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  constexpr unsigned int kFlags =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if ((Flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto context = current_context();
  return context ? allocate_host(bytesize, Flags, pp) : context.error;
}

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) {
  return api::cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  HostBlock block;
  if (pFlags == nullptr || !find_host(reinterpret_cast<uint64_t>(p), block))
    return CUDA_ERROR_INVALID_VALUE;
  *pFlags = block.flags;
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void* p) { return p == nullptr ? CUDA_SUCCESS : free_host(p, false); }

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  HostBlock block;
  if (pdptr == nullptr || Flags != 0 || !find_host(reinterpret_cast<uint64_t>(p), block))
    return CUDA_ERROR_INVALID_VALUE;
  *pdptr = reinterpret_cast<CUdeviceptr>(p);
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
  const auto context = current_context();
  return context ? register_host(p, bytesize, Flags) : context.error;
}

CUresult cuMemHostUnregister(void* p) { return free_host(p, true); }

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Device* device = Runtime::get().device_of_address(ptr);
  const auto block = device != nullptr ? device->memory().find(ptr) : std::nullopt;
  HostBlock host;
  const bool pinned = !block && find_host(ptr, host);
  if (!block && !pinned) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(data, block ? context_on(*device) : current_handle());
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(data,
                 static_cast<unsigned int>(block ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(data, ptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (block && !block->managed) return CUDA_ERROR_INVALID_VALUE;
      return put(data, reinterpret_cast<void*>(ptr));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(data, block ? device->ordinal() : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(data, CUdeviceptr{block ? block->address : host.address});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(data, size_t{block ? block->bytes : host.bytes});
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put(data, true);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(data, block && block->managed);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

// An attribute that does not hold of the address is 0.
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr ptr) {
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned int i = 0; i < numAttributes; ++i) {
    if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = api::cuPointerGetAttribute(data[i], attributes[i], ptr);
    if (result == CUDA_SUCCESS) continue;
    if (result != CUDA_ERROR_INVALID_VALUE) return result;
    const auto clear = [&](auto none) { std::memcpy(data[i], &none, sizeof none); };
    switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_MAPPED:
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        clear(false);
        break;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        clear(0U);
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        clear(CU_DEVICE_INVALID);
        break;
      default:
        clear(uint64_t{0});
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace simgpu::api
