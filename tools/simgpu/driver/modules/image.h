// What cuModuleLoad* was handed: PTX, or something only a real driver can run.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ptx/decode.h"
#include "ptx/text.h"

namespace simgpu {

struct ImageResult {
  CUresult error = CUDA_SUCCESS;
  std::shared_ptr<const ptx::Module> text;
  ptx::Program program;                // its variables are where `allocate` placed them
  std::span<const std::byte> content;  // what it was made of, of a fat binary the part
  std::shared_ptr<const std::string> decompressed;  // where that is, if the part was compressed
  std::string problem;                              // that was said on stderr
};

// `bytes` = 0: the caller gave only an address; the size comes from the text's end. Errors, as the
// real driver has them: INVALID_IMAGE (not an image), NO_BINARY_FOR_GPU (device code for real
// GPUs), INVALID_PTX. One line on stderr says why, but for code for real GPUs: programs that carry
// several images try them one after the other. Where a process ends that loaded none but was
// refused machine code, the line comes then.
ImageResult load_image(const void* data, size_t bytes, const ptx::Allocate& allocate);
// The same where the program is not to run: its variables have no memory.
ImageResult check_image(const void* data, size_t bytes);

// The file's bytes; false when it cannot be read.
bool read_file(const char* path, std::vector<std::byte>& bytes);

}  // namespace simgpu
