// Copies, fills and what is known of addresses.
#include <cstddef>

#include "cudart/runtime.h"

namespace simgpu::cudart {
namespace {

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// A call without a stream waits for the thread's default stream, whichever that is.
const CUstream* or_default(const cudaStream_t* stream, CUstream& storage) {
  if (stream == nullptr && !this_thread().per_thread_stream) return nullptr;
  storage = at(stream != nullptr ? *stream : nullptr);
  return &storage;
}
CUresult finish(CUresult result, const cudaStream_t* asked, const CUstream* used) {
  if (result != CUDA_SUCCESS || asked != nullptr || used == nullptr) return result;
  return cuStreamSynchronize(*used);
}

// Which side is the device's, as the kind says; with cudaMemcpyDefault the address says it.
CUmemorytype side(bool device, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}
bool from_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}
bool to_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}

template <class Copy>
void set_sides(Copy& to, const void* from_memory, void* to_memory, cudaMemcpyKind kind) {
  to.srcMemoryType = side(from_device(kind), kind);
  to.dstMemoryType = side(to_device(kind), kind);
  to.srcHost = from_memory;
  to.srcDevice = address(from_memory);
  to.dstHost = to_memory;
  to.dstDevice = address(to_memory);
}

}  // namespace

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                 const cudaStream_t* stream) {
  if (bytes == 0) return cudaSuccess;
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  CUstream storage;
  const CUstream* const used = or_default(stream, storage);
  const CUdeviceptr t = address(to), f = address(from);
  CUresult result = CUDA_SUCCESS;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      result =
          used != nullptr ? cuMemcpyHtoDAsync(t, from, bytes, *used) : cuMemcpyHtoD(t, from, bytes);
      break;
    case cudaMemcpyDeviceToHost:
      result =
          used != nullptr ? cuMemcpyDtoHAsync(to, f, bytes, *used) : cuMemcpyDtoH(to, f, bytes);
      break;
    case cudaMemcpyDeviceToDevice:
      // Copies within the device are not waited for, whichever call makes them.
      return as_runtime(cuMemcpyDtoDAsync(t, f, bytes, used != nullptr ? *used : at(nullptr)));
    default:
      result = used != nullptr ? cuMemcpyAsync(t, f, bytes, *used) : cuMemcpy(t, f, bytes);
  }
  return as_runtime(finish(result, stream, used));
}

cudaError_t copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                    size_t height, cudaMemcpyKind kind, const cudaStream_t* stream) {
  if (width == 0 || height == 0) return cudaSuccess;
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
  CUDA_MEMCPY2D work{};
  set_sides(work, from, to, kind);
  work.srcPitch = from_pitch;
  work.dstPitch = to_pitch;
  work.WidthInBytes = width;
  work.Height = height;
  CUstream storage;
  const CUstream* const used = or_default(stream, storage);
  return as_runtime(
      finish(used != nullptr ? cuMemcpy2DAsync(&work, *used) : cuMemcpy2D(&work), stream, used));
}

cudaError_t driver_parameters(const cudaMemcpy3DParms* from, CUDA_MEMCPY3D* to) {
  if (from == nullptr) return cudaErrorInvalidValue;
  if (from->srcArray != nullptr || from->dstArray != nullptr) return cudaErrorNotSupported;
  *to = {};
  set_sides(*to, from->srcPtr.ptr, from->dstPtr.ptr, from->kind);
  to->srcXInBytes = from->srcPos.x;
  to->srcY = from->srcPos.y;
  to->srcZ = from->srcPos.z;
  to->dstXInBytes = from->dstPos.x;
  to->dstY = from->dstPos.y;
  to->dstZ = from->dstPos.z;
  to->srcPitch = from->srcPtr.pitch;
  to->srcHeight = from->srcPtr.ysize;
  to->dstPitch = from->dstPtr.pitch;
  to->dstHeight = from->dstPtr.ysize;
  to->WidthInBytes = from->extent.width;
  to->Height = from->extent.height;
  to->Depth = from->extent.depth;
  return cudaSuccess;
}

CUDA_MEMCPY3D row_copy(const void* to, const void* from, size_t bytes) {
  CUDA_MEMCPY3D row{};
  set_sides(row, from, const_cast<void*>(to), cudaMemcpyDefault);
  row.srcPitch = row.dstPitch = row.WidthInBytes = bytes;
  row.srcHeight = row.dstHeight = row.Height = row.Depth = 1;
  return row;
}

cudaError_t copy_3d(const cudaMemcpy3DParms* parameters, const cudaStream_t* stream) {
  CUDA_MEMCPY3D work;
  if (const cudaError_t error = driver_parameters(parameters, &work); error != cudaSuccess)
    return error;
  if (work.WidthInBytes == 0 || work.Height == 0 || work.Depth == 0) return cudaSuccess;
  CUstream storage;
  const CUstream* const used = or_default(stream, storage);
  return as_runtime(
      finish(used != nullptr ? cuMemcpy3DAsync(&work, *used) : cuMemcpy3D(&work), stream, used));
}

cudaError_t copy_symbol(const void* symbol, size_t offset, void* to, const void* from, size_t bytes,
                        cudaMemcpyKind kind, const cudaStream_t* stream) {
  CUdeviceptr variable = 0;
  size_t size = 0;
  if (const cudaError_t error = find_variable(symbol, &variable, &size); error != cudaSuccess)
    return error;
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  auto* const place = reinterpret_cast<std::byte*>(variable) + offset;
  return to != nullptr ? copy(to, place, bytes, kind, stream)
                       : copy(place, from, bytes, kind, stream);
}

cudaError_t fill_2d(void* to, size_t pitch, int value, size_t width, size_t height,
                    const cudaStream_t* stream) {
  if (width == 0 || height == 0) return cudaSuccess;
  const auto byte = static_cast<unsigned char>(value);
  CUstream storage;
  const CUstream* const used = or_default(stream, storage);
  CUresult result = CUDA_SUCCESS;
  if (height == 1)
    result = used != nullptr ? cuMemsetD8Async(address(to), byte, width, *used)
                             : cuMemsetD8(address(to), byte, width);
  else
    result = used != nullptr ? cuMemsetD2D8Async(address(to), pitch, byte, width, height, *used)
                             : cuMemsetD2D8(address(to), pitch, byte, width, height);
  return as_runtime(finish(result, stream, used));
}

cudaError_t fill_3d(cudaPitchedPtr to, int value, cudaExtent extent, const cudaStream_t* stream) {
  for (size_t z = 0; z < extent.depth; ++z) {
    auto* const slice = static_cast<std::byte*>(to.ptr) + z * to.pitch * to.ysize;
    if (const cudaError_t error =
            fill_2d(slice, to.pitch, value, extent.width, extent.height, stream);
        error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

cudaError_t allocate_3d(cudaPitchedPtr* memory, cudaExtent extent) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr made = 0;
  size_t pitch = 0;
  const CUresult result =
      cuMemAllocPitch(&made, &pitch, extent.width, extent.height * extent.depth, 4);
  if (result == CUDA_SUCCESS)
    *memory = {reinterpret_cast<void*>(made), pitch, extent.width, extent.height};
  return as_runtime(result);
}

// Waits for the device's work, as the CUDA runtime does.
cudaError_t free_memory(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  return as_runtime(cuMemFree(address(memory)));
}

cudaError_t pointer_attributes(cudaPointerAttributes* to, const void* pointer) {
  if (to == nullptr) return cudaErrorInvalidValue;
  *to = {};
  unsigned int type = 0;
  bool managed = false;
  CUdeviceptr device = 0;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* values[] = {&type, &managed, &device, &to->device};
  if (const CUresult error = cuPointerGetAttributes(4, wanted, values, address(pointer));
      error != CUDA_SUCCESS)
    return as_runtime(error);
  if (type == 0) {  // the program's own memory
    to->type = cudaMemoryTypeUnregistered;
    to->device = cudaInvalidDeviceId;
    to->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  to->type = managed                        ? cudaMemoryTypeManaged
             : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                            : cudaMemoryTypeHost;
  to->devicePointer = reinterpret_cast<void*>(device);
  if (to->type != cudaMemoryTypeDevice) to->hostPointer = const_cast<void*>(pointer);
  return cudaSuccess;
}

}  // namespace simgpu::cudart
