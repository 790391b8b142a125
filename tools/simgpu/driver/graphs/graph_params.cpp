#include "driver/graphs/graph_params.h"

namespace simgpu {
namespace {

struct Side {
  uint64_t address = 0;
  bool device = false;
};

// One side of a three-dimensional copy: base, offsets, and whether it is device memory.
CUresult side_of(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y,
                 size_t z, size_t pitch, size_t height, Side& side) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      side.address = reinterpret_cast<uint64_t>(host);
      break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      side.address = device;
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (side.address == 0) return CUDA_ERROR_INVALID_VALUE;
  side.address += x + pitch * (y + height * z);
  side.device = Runtime::get().device_of_address(side.address) != nullptr;
  if (type == CU_MEMORYTYPE_DEVICE && !side.device) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

// The members that all versions of the kernel node parameters have.
template <class To, class From>
void copy_common(To& to, const From& from) {
  to.func = from.func;
  to.gridDimX = from.gridDimX;
  to.gridDimY = from.gridDimY;
  to.gridDimZ = from.gridDimZ;
  to.blockDimX = from.blockDimX;
  to.blockDimY = from.blockDimY;
  to.blockDimZ = from.blockDimZ;
  to.sharedMemBytes = from.sharedMemBytes;
  to.kernelParams = from.kernelParams;
  to.extra = from.extra;
}

}  // namespace

CUresult from_params(const CUDA_KERNEL_NODE_PARAMS* params, LaunchWork& work) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUfunction handle =
      params->func != nullptr ? params->func : reinterpret_cast<CUfunction>(params->kern);
  const auto function = find_function(handle);
  if (!function) return function.error;
  return prepare_launch(function.object, shape_of(*params), params->kernelParams, params->extra,
                        work);
}

CUresult from_params(const CUDA_MEMCPY3D* p, CopyWork& work) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Side from, to;
  const CUresult error = side_of(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes,
                                 p->srcY, p->srcZ, p->srcPitch, p->srcHeight, from);
  if (error != CUDA_SUCCESS) return error;
  const CUresult other = side_of(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes,
                                 p->dstY, p->dstZ, p->dstPitch, p->dstHeight, to);
  if (other != CUDA_SUCCESS) return other;
  work = {from.address,
          to.address,
          p->WidthInBytes,
          p->Height,
          p->Depth,
          p->srcPitch,
          p->dstPitch,
          p->srcPitch * p->srcHeight,
          p->dstPitch * p->dstHeight,
          from.device,
          to.device};
  return check_copy(work);
}

CUresult from_params(const CUDA_MEMSET_NODE_PARAMS* params, FillWork& work) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params->elementSize != 1 && params->elementSize != 2 && params->elementSize != 4)
    return CUDA_ERROR_INVALID_VALUE;
  work.to = params->dst;
  work.value = params->value;
  work.element_bytes = params->elementSize;
  work.width = params->width;
  work.rows = params->height;
  work.pitch = params->pitch;
  return check_fill(work);
}

CUresult to_params(GraphNode& node, CUDA_KERNEL_NODE_PARAMS* params) {
  auto* work = std::get_if<LaunchWork>(&node.work);
  if (work == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node.param_pointers.clear();
  for (const ptx::Parameter& one : work->function->code->parameters)
    node.param_pointers.push_back(work->params.data() + one.offset);
  *params = CUDA_KERNEL_NODE_PARAMS{};
  params->func = HandleTable<CUfunction, Function>::handle_of(work->function.get());
  params->gridDimX = work->shape.grid.x;
  params->gridDimY = work->shape.grid.y;
  params->gridDimZ = work->shape.grid.z;
  params->blockDimX = work->shape.block.x;
  params->blockDimY = work->shape.block.y;
  params->blockDimZ = work->shape.block.z;
  params->sharedMemBytes = work->shape.dynamic_shared_bytes;
  params->kernelParams = node.param_pointers.data();
  return CUDA_SUCCESS;
}

CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  CUDA_KERNEL_NODE_PARAMS full{};
  if (params != nullptr) copy_common(full, *params);
  return full;
}

CUresult from_params(const CUDA_KERNEL_NODE_PARAMS_v3& params, LaunchWork& work) {
  CUDA_KERNEL_NODE_PARAMS full{};
  copy_common(full, params);
  full.kern = params.kern;
  return from_params(&full, work);
}

CUresult from_params(const CUDA_MEMSET_NODE_PARAMS_v2& p, FillWork& work) {
  const CUDA_MEMSET_NODE_PARAMS params{p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
  return from_params(&params, work);
}

CUDA_KERNEL_NODE_PARAMS_v1 narrow(const CUDA_KERNEL_NODE_PARAMS& params) {
  CUDA_KERNEL_NODE_PARAMS_v1 short_form{};
  copy_common(short_form, params);
  return short_form;
}

}  // namespace simgpu
