// Text to code.
#pragma once
#include <functional>

#include "ptx/code.h"

namespace simgpu::ptx {

// Gives the address of so many bytes of memory, filled with zeros. Throws std::bad_alloc.
using Allocate = std::function<uint64_t(uint64_t bytes)>;
inline constexpr uint64_t kGlobalAlignment = 256;  // the address is a multiple of it

// Makes code of a module. `allocate` gives device memory for its .global and .const variables.
// Throws TextError, for a name or an instruction that is not known, too.
Program decode(const Module& module, const Allocate& allocate);

}  // namespace simgpu::ptx
