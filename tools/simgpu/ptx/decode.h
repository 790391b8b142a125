// Text to code.
#pragma once
#include <functional>

#include "ptx/code.h"

namespace simgpu::ptx {

// What `allocate` gives is a multiple of it.
inline constexpr uint64_t kGlobalAlignment = 256;

// Makes code of a module. `allocate` gives device memory, filled with zeros, for its .global
// and .const variables. Throws TextError, for a name or an instruction that is not known, too.
Program decode(const Module& module, const std::function<uint64_t(uint64_t bytes)>& allocate);

}  // namespace simgpu::ptx
