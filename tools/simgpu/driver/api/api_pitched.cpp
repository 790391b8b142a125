// Copies and fills of two and three dimensions, all of them rows of linear memory.
#include "driver/api/api.h"
#include "driver/execution/memory.h"
#include "driver/graphs/capture.h"
#include "driver/graphs/graph_params.h"

namespace simgpu::api {
namespace {

CUDA_MEMCPY3D one_slice(const CUDA_MEMCPY2D& from) {
  CUDA_MEMCPY3D p{};
  p.srcXInBytes = from.srcXInBytes;
  p.srcY = from.srcY;
  p.srcMemoryType = from.srcMemoryType;
  p.srcHost = from.srcHost;
  p.srcDevice = from.srcDevice;
  p.srcPitch = from.srcPitch;
  p.dstXInBytes = from.dstXInBytes;
  p.dstY = from.dstY;
  p.dstMemoryType = from.dstMemoryType;
  p.dstHost = from.dstHost;
  p.dstDevice = from.dstDevice;
  p.dstPitch = from.dstPitch;
  p.WidthInBytes = from.WidthInBytes;
  p.Height = from.Height;
  p.Depth = 1;
  return p;
}

// A pitch or height of 0 means that there is nothing between rows, or slices.
CUresult whole(CUDA_MEMCPY3D& p) {
  const auto side = [&](size_t x, size_t& pitch, size_t& height) {
    if (pitch == 0) pitch = x + p.WidthInBytes;
    if (height == 0) height = p.Height;
    return x <= pitch && p.WidthInBytes <= pitch - x && (p.Depth <= 1 || p.Height <= height);
  };
  return side(p.srcXInBytes, p.srcPitch, p.srcHeight) &&
                 side(p.dstXInBytes, p.dstPitch, p.dstHeight)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_async(CUDA_MEMCPY3D params, CUstream hStream) {
  if (const CUresult error = whole(params); error != CUDA_SUCCESS) return error;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  CopyWork work;
  if (const CUresult error = from_params(&params, work); error != CUDA_SUCCESS) return error;
  return work.bytes() == 0 ? CUDA_SUCCESS : submit(stream.object, work);
}

CUresult copy(const CUDA_MEMCPY3D& params) {
  const auto stream = resolve_stream(nullptr);
  if (!stream) return stream.error;
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  const CUresult result = copy_async(params, nullptr);
  return result == CUDA_SUCCESS ? synchronize(*stream.object) : result;
}

template <class T>
CUresult fill_async(CUdeviceptr to, size_t pitch, T value, size_t width, size_t height,
                    CUstream hStream) {
  if (height > 1 && pitch < width * sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  const FillWork work{to, value, sizeof(T), width, height, pitch};
  if (const CUresult error = check_fill(work); error != CUDA_SUCCESS) return error;
  return width == 0 || height == 0 ? CUDA_SUCCESS : submit(stream.object, work);
}

template <class T>
CUresult fill(CUdeviceptr to, size_t pitch, T value, size_t width, size_t height) {
  const auto stream = resolve_stream(nullptr);
  if (!stream) return stream.error;
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  return fill_async(to, pitch, value, width, height, nullptr);
}

}  // namespace

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* pCopy) {
  return pCopy == nullptr ? CUDA_ERROR_INVALID_VALUE : copy(one_slice(*pCopy));
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* pCopy) { return api::cuMemcpy2D_v2(pCopy); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return pCopy == nullptr ? CUDA_ERROR_INVALID_VALUE : copy_async(one_slice(*pCopy), hStream);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* pCopy) {
  return pCopy == nullptr ? CUDA_ERROR_INVALID_VALUE : copy(*pCopy);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return pCopy == nullptr ? CUDA_ERROR_INVALID_VALUE : copy_async(*pCopy, hStream);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                         size_t Height) {
  return fill(dstDevice, dstPitch, uc, Width, Height);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                          size_t Height) {
  return fill(dstDevice, dstPitch, us, Width, Height);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                          size_t Height) {
  return fill(dstDevice, dstPitch, ui, Width, Height);
}
CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                           size_t Height, CUstream hStream) {
  return fill_async(dstDevice, dstPitch, uc, Width, Height, hStream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                            size_t Height, CUstream hStream) {
  return fill_async(dstDevice, dstPitch, us, Width, Height, hStream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                            size_t Height, CUstream hStream) {
  return fill_async(dstDevice, dstPitch, ui, Width, Height, hStream);
}

}  // namespace simgpu::api
