// PTX in what a program hands over: the text itself, or a part of a fat binary.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace simgpu {

inline constexpr uint16_t kMachineCuda = 190;  // EM_CUDA: an ELF file that is a cubin

struct FoundPtx {
  CUresult error = CUDA_SUCCESS;
  std::string_view text;
  std::shared_ptr<const std::string> decompressed;  // where the text is, if it was compressed
  std::string problem;                              // what is wrong, where that is known
};

// `bytes` = 0: the caller gave only an address, and the size is the image's own. Errors are
// NO_BINARY_FOR_GPU for machine code, and for a fat binary without PTX that can be read;
// INVALID_IMAGE for what is neither.
FoundPtx find_ptx(const void* data, size_t bytes);

}  // namespace simgpu
