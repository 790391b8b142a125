// What is asked and set of a kernel's function.
#pragma once
#include "driver/objects.h"

namespace simgpu {

CUresult get_attribute(const Function& function, CUfunction_attribute attribute, int* value);
CUresult set_attribute(Function& function, CUfunction_attribute attribute, int value);

// Threads of a block, at most.
uint32_t most_threads(const Function& function);
// Where each of its parameters is in the packed buffer.
CUresult parameter_at(std::span<const ptx::Parameter> parameters, size_t index, size_t* offset,
                      size_t* bytes);

}  // namespace simgpu
