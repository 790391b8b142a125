#include "driver/modules/image.h"

#include <cstring>
#include <fstream>

#include "driver/modules/fatbin.h"
#include "driver/refusals.h"
#include "driver/settings.h"
#include "ptx/decode.h"

namespace simgpu {
namespace {

ImageResult refuse(CUresult error, const std::string& why) {
  return {error, nullptr, {}, {}, {}, why};
}

// Code that cannot be run is found now, and not at the first launch.
ImageResult read(std::string_view from, const ptx::Allocate& allocate) {
  try {
    auto text = std::make_shared<const ptx::Module>(ptx::parse(from));
    ptx::Program program = ptx::decode(*text, allocate);
    return {
        CUDA_SUCCESS, std::move(text), std::move(program), std::as_bytes(std::span(from)), {}, {}};
  } catch (const ptx::TextError& error) {
    return refuse(CUDA_ERROR_INVALID_PTX, std::string("PTX, ") + error.what());
  } catch (const std::bad_alloc&) {
    return refuse(CUDA_ERROR_OUT_OF_MEMORY, {});
  }
}

}  // namespace

ImageResult load_image(const void* data, size_t bytes, const ptx::Allocate& allocate) {
  if (data == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, {});
  const FoundPtx found = find_ptx(data, bytes);
  ImageResult result = refuse(found.error, found.problem);
  if (found.error == CUDA_SUCCESS)
    result = read(found.text, allocate);
  else if (found.problem.empty())
    machine_code_refused();
  result.decompressed = found.decompressed;
  if (result.error == CUDA_SUCCESS) module_loaded();
  if (!result.problem.empty()) complain("cannot load module: " + result.problem);
  return result;
}

ImageResult check_image(const void* data, size_t bytes) {
  std::vector<std::unique_ptr<std::byte[]>> memory;
  return load_image(data, bytes, [&memory](uint64_t size) {
    memory.push_back(std::make_unique<std::byte[]>(size + ptx::kGlobalAlignment));
    return ptx::align(reinterpret_cast<uint64_t>(memory.back().get()), ptx::kGlobalAlignment);
  });
}

bool read_file(const char* path, std::vector<std::byte>& bytes) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return false;
  const std::streamoff size = in.tellg();
  if (size < 0) return false;
  bytes.resize(static_cast<size_t>(size));
  in.seekg(0);
  return static_cast<bool>(in.read(reinterpret_cast<char*>(bytes.data()), size));
}

}  // namespace simgpu
