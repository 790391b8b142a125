#include "driver/modules/attributes.h"

#include <algorithm>

#include "driver/runtime.h"

namespace simgpu {
namespace {

constexpr uint32_t kMostThreads = 1024;

// The first of the text's attributes about clusters.
int cluster_size(const Function& function, int dimension) {
  return static_cast<int>(function.code->cluster[dimension]);
}

}  // namespace

uint32_t most_threads(const Function& function) {
  const uint32_t most = function.code->most_threads;
  return most == 0 ? kMostThreads : std::min(most, kMostThreads);
}

CUresult get_attribute(const Function& function, CUfunction_attribute attribute, int* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Chip& chip = function.context->device->chip();
  const ptx::Program& program = function.module_code->program;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(most_threads(function));
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function.code->shared_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(program.routines[function.code->routine].local_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(function.code->registers);
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = chip.compute_major * 10 + chip.compute_minor;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function.max_dynamic_shared.load());
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = -1;
      break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      *value = cluster_size(function, 0) != 0 ? 1 : 0;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      *value = cluster_size(function, 0);
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      *value = cluster_size(function, 1);
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      *value = cluster_size(function, 2);
      break;
    default:
      if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(Function& function, CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const Chip& chip = function.context->device->chip();
      if (value < 0 || static_cast<uint32_t>(value) > chip.shared_per_block_optin)
        return CUDA_ERROR_INVALID_VALUE;
      function.max_dynamic_shared = static_cast<uint32_t>(value);
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return CUDA_SUCCESS;  // hints
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult parameter_at(std::span<const ptx::Parameter> parameters, size_t index, size_t* offset,
                      size_t* bytes) {
  if (offset == nullptr || index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].offset;
  if (bytes != nullptr) *bytes = parameters[index].bytes;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
