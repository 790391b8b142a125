// What cuModuleLoad* was handed: a simgpu module, or something only a real driver can run.
#pragma once
#include <cuda.h>
#include <simgpu/abi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace simgpu {

inline constexpr uint16_t kMachineCuda = 190;  // EM_CUDA: an ELF file that is a cubin

// A kernel module mapped into the process; unmapped with the last reference.
class LoadedImage {
 public:
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  const KernelEntry* find(const std::string& name) const;  // null when there is none
  const std::vector<const KernelEntry*>& kernels() const { return kernels_; }

 private:
  friend struct ImageLoader;
  LoadedImage(void* library, int file) : library_(library), file_(file) {}
  void* library_;
  int file_;
  std::vector<const KernelEntry*> kernels_;
};

struct ImageResult {
  CUresult error = CUDA_SUCCESS;
  std::shared_ptr<LoadedImage> image;
};

// `bytes` = 0: the caller gave only an address; the size comes from the image's own header. Errors,
// as the real driver has them: INVALID_IMAGE (not an image), NO_BINARY_FOR_GPU (device code for
// real GPUs), INVALID_PTX (PTX: there is no compiler here). One line on stderr says why.
ImageResult load_image(const void* data, size_t bytes);

// Its size by its own header, or 0 when it is not an ELF file.
size_t elf_bytes(const void* data, size_t limit);

// The file's bytes; false when it cannot be read.
bool read_file(const char* path, std::vector<std::byte>& bytes);

}  // namespace simgpu
