// The cubin that tools are shown for a simulated module: what a real one says of its kernels, in
// the same sections, as nvcc 13.0 makes them: .text.K, .nv.info, .nv.info.K, .nv.shared.K, .symtab.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ptx/code.h"

namespace simgpu {

// `module` is the file that was loaded. Its content and the kernel's name replace the kernel's
// code: the same file has the same code in every process, another build of it has other code.
// `capability` is the chip's: 90 is 9.0.
std::vector<std::byte> make_cubin(std::span<const ptx::Kernel> kernels,
                                  std::span<const std::byte> module, uint32_t capability);

}  // namespace simgpu
