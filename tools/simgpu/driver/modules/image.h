// What cuModuleLoad* was handed: PTX, a simgpu module, or something only a real driver can run.
#pragma once
#include <cuda.h>
#include <simgpu/abi.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ptx/text.h"

namespace simgpu {

// The kernels of a module: of PTX, or of a shared object that is mapped into the process and
// unmapped with the last reference.
class LoadedImage {
 public:
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  const KernelEntry* find(const std::string& name) const;  // null when there is none
  const std::vector<const KernelEntry*>& kernels() const { return kernels_; }
  const ptx::Module* text() const { return text_.get(); }  // null: a shared object

 private:
  friend struct ImageLoader;
  LoadedImage(void* library, int file) : library_(library), file_(file) {}
  explicit LoadedImage(ptx::Module text);
  void* library_ = nullptr;
  int file_ = -1;
  std::vector<const KernelEntry*> kernels_;
  std::unique_ptr<ptx::Module> text_;
  // What the text says of its kernels, as shared objects have it.
  std::vector<KernelEntry> entries_;
  std::vector<std::vector<ParamInfo>> parameters_;
};

struct ImageResult {
  CUresult error = CUDA_SUCCESS;
  std::shared_ptr<LoadedImage> image;
  std::span<const std::byte> content;  // what it was made of, of a fat binary the part
  std::string problem;                 // that was said on stderr
};

// `bytes` = 0: the caller gave only an address; the size comes from the image's own header, or
// from the text's end. Errors, as the real driver has them: INVALID_IMAGE (not an image),
// NO_BINARY_FOR_GPU (device code for real GPUs), INVALID_PTX. One line on stderr says why, but for
// code for real GPUs: programs that carry several images try them one after the other. Where a
// process ends that loaded none but was refused machine code, the line comes then.
ImageResult load_image(const void* data, size_t bytes);

// The file's bytes; false when it cannot be read.
bool read_file(const char* path, std::vector<std::byte>& bytes);

}  // namespace simgpu
