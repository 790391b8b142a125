// Attributes of kernel nodes: cluster dimension and cooperative launch. They stay when a node's
// parameters are set [guess]; all others are taken and read back as 0.
#include "driver/api/api.h"
#include "driver/graphs/graph_params.h"

namespace simgpu {
namespace {

// Null: no kernel node.
LaunchWork* kernel_of(CUgraphNode handle) {
  const auto node = Runtime::get().nodes.find(handle);
  return node ? std::get_if<LaunchWork>(&node->work) : nullptr;
}

}  // namespace

CUresult set_params(LaunchWork& present, LaunchWork work) {
  work.shape.cluster = present.shape.cluster;
  work.shape.cooperative = present.shape.cooperative;
  if (const CUresult error = check_shape(*work.function, work.shape); error != CUDA_SUCCESS)
    return error;
  present = std::move(work);
  return CUDA_SUCCESS;
}

namespace api {

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                       CUkernelNodeAttrValue* value_out) {
  const LaunchWork* const work = kernel_of(hNode);
  if (work == nullptr || value_out == nullptr || attr < 0 || attr >= CU_LAUNCH_ATTRIBUTE_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  *value_out = {};
  const LaunchShape& shape = work->shape;
  if (attr == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    value_out->clusterDim = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
  if (attr == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) value_out->cooperative = shape.cooperative ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                       const CUkernelNodeAttrValue* value) {
  LaunchWork* const work = kernel_of(hNode);
  if (work == nullptr || value == nullptr || attr < 0 || attr >= CU_LAUNCH_ATTRIBUTE_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  LaunchShape shape = work->shape;
  if (attr == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    shape.cluster = {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
  if (attr == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) shape.cooperative = value->cooperative != 0;
  const CUresult error = check_shape(*work->function, shape);
  if (error == CUDA_SUCCESS) work->shape = shape;
  return error;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
  LaunchWork* const to = kernel_of(dst);
  const LaunchWork* const from = kernel_of(src);
  if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchShape shape = to->shape;
  shape.cluster = from->shape.cluster;
  shape.cooperative = from->shape.cooperative;
  const CUresult error = check_shape(*to->function, shape);
  if (error == CUDA_SUCCESS) to->shape = shape;
  return error;
}

}  // namespace api
}  // namespace simgpu
