// Copies and fills. The calls without a stream use the default stream and return when they are
// done.
#include "driver/api/api.h"
#include "driver/execution/memory.h"
#include "driver/graphs/capture.h"

namespace simgpu::api {
namespace {

CUresult copy_async(uint64_t to, uint64_t from, uint64_t bytes, CUstream hStream) {
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  const CopyWork work = linear_copy(to, from, bytes);
  if (const CUresult error = check_copy(work); error != CUDA_SUCCESS) return error;
  return bytes == 0 ? CUDA_SUCCESS : submit(stream.object, work);
}

CUresult copy(uint64_t to, uint64_t from, uint64_t bytes) {
  const auto stream = resolve_stream(nullptr);
  if (!stream) return stream.error;
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  const CUresult result = copy_async(to, from, bytes, nullptr);
  return result == CUDA_SUCCESS ? synchronize(*stream.object) : result;
}

// The typed calls insist on their side being device memory.
CUresult need_device(CUdeviceptr address, size_t bytes) {
  return bytes == 0 || Runtime::get().device_of_address(address) != nullptr
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

uint64_t address(const void* p) { return reinterpret_cast<uint64_t>(p); }

template <class T>
CUresult fill_async(CUdeviceptr to, T value, size_t count, CUstream hStream) {
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  FillWork work;
  work.to = to;
  work.value = value;
  work.element_bytes = sizeof(T);
  work.width = count;
  if (const CUresult error = check_fill(work); error != CUDA_SUCCESS) return error;
  return count == 0 ? CUDA_SUCCESS : submit(stream.object, work);
}

template <class T>
CUresult fill(CUdeviceptr to, T value, size_t count) {
  const auto stream = resolve_stream(nullptr);
  if (!stream) return stream.error;
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  return fill_async(to, value, count, nullptr);
}

}  // namespace

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return copy_async(dst, src, ByteCount, hStream);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return copy(dst, src, ByteCount);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  if (const CUresult error = need_device(dstDevice, ByteCount); error != CUDA_SUCCESS) return error;
  return copy(dstDevice, address(srcHost), ByteCount);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                              CUstream hStream) {
  if (const CUresult error = need_device(dstDevice, ByteCount); error != CUDA_SUCCESS) return error;
  return copy_async(dstDevice, address(srcHost), ByteCount, hStream);
}

CUresult cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  if (const CUresult error = need_device(srcDevice, ByteCount); error != CUDA_SUCCESS) return error;
  return copy(address(dstHost), srcDevice, ByteCount);
}
CUresult cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream) {
  if (const CUresult error = need_device(srcDevice, ByteCount); error != CUDA_SUCCESS) return error;
  return copy_async(address(dstHost), srcDevice, ByteCount, hStream);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  if (const CUresult error = need_device(dstDevice, ByteCount); error != CUDA_SUCCESS) return error;
  if (const CUresult error = need_device(srcDevice, ByteCount); error != CUDA_SUCCESS) return error;
  return copy(dstDevice, srcDevice, ByteCount);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream) {
  if (const CUresult error = need_device(dstDevice, ByteCount); error != CUDA_SUCCESS) return error;
  if (const CUresult error = need_device(srcDevice, ByteCount); error != CUDA_SUCCESS) return error;
  return copy_async(dstDevice, srcDevice, ByteCount, hStream);
}

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return fill(dstDevice, uc, N);
}

CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return fill(dstDevice, us, N);
}

CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return fill(dstDevice, ui, N);
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return fill_async(dstDevice, uc, N, hStream);
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return fill_async(dstDevice, us, N, hStream);
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return fill_async(dstDevice, ui, N, hStream);
}

}  // namespace simgpu::api
