// Linking: PTX of several inputs is joined to one text, in which each is a module of its own.
#include "driver/api/api.h"
#include "driver/api/jit_log.h"
#include "driver/context.h"
#include "driver/modules/fatbin.h"
#include "driver/modules/module.h"

namespace simgpu::api {
namespace {

CUresult refuse(const JitLog& log, CUresult error, const char* name, const std::string& why) {
  const std::string text =
      "cannot link " + std::string(name != nullptr ? name : "an input") + ": " + why;
  complain(text);
  log.write(text + "\n");
  return error;
}

CUresult add(Link& link, CUjitInputType type, const void* data, size_t bytes, const char* name,
             const JitLog& own_log) {
  if (data == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(link.mutex);
  const JitLog& log = own_log.bytes != nullptr ? own_log : link.errors;
  if (!link.image.empty()) return CUDA_ERROR_INVALID_VALUE;  // it is complete
  if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY)
    return refuse(log, CUDA_ERROR_NO_BINARY_FOR_GPU, name,
                  "machine code and libraries need a GPU; PTX can be linked");
  const FoundPtx found = find_ptx(data, bytes);
  if (found.error != CUDA_SUCCESS)
    return refuse(log, type == CU_JIT_INPUT_PTX ? CUDA_ERROR_INVALID_PTX : found.error, name,
                  !found.problem.empty() ? found.problem : "there is no PTX in it");
  try {
    static_cast<void>(ptx::parse(found.text));
  } catch (const ptx::TextError& error) {
    return refuse(log, CUDA_ERROR_INVALID_PTX, name, std::string("PTX, ") + error.what());
  }
  link.text.append(found.text).append("\n");
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option* options, void** optionValues,
                         CUlinkState* stateOut) {
  if (stateOut == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const auto context = current_context(); !context) return context.error;
  auto link = std::make_shared<Link>();
  link->errors = JitLog::of_errors(numOptions, options, optionValues);
  link->information = JitLog::of_information(numOptions, options, optionValues);
  *stateOut = Runtime::get().links.insert(link);
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size,
                          const char* name, unsigned int numOptions, CUjit_option* options,
                          void** optionValues) {
  const auto link = Runtime::get().links.find(state);
  if (!link) return CUDA_ERROR_INVALID_HANDLE;
  return add(*link, type, data, size, name, JitLog::of_errors(numOptions, options, optionValues));
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path,
                          unsigned int numOptions, CUjit_option* options, void** optionValues) {
  const auto link = Runtime::get().links.find(state);
  if (!link) return CUDA_ERROR_INVALID_HANDLE;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::byte> bytes;
  if (!read_file(path, bytes)) return CUDA_ERROR_FILE_NOT_FOUND;
  return add(*link, type, bytes.data(), bytes.size(), path,
             JitLog::of_errors(numOptions, options, optionValues));
}

CUresult cuLinkComplete(CUlinkState state, void** cubinOut, size_t* sizeOut) {
  if (cubinOut == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto link = Runtime::get().links.find(state);
  if (!link) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(link->mutex);
  if (link->image.empty()) {
    if (link->text.empty()) return CUDA_ERROR_INVALID_VALUE;
    const ImageResult result = check_image(link->text.data(), link->text.size());
    link->errors.write(result.problem);
    link->information.write({});
    if (result.error != CUDA_SUCCESS) return result.error;
    link->image = std::move(link->text);
  }
  *cubinOut = link->image.data();
  if (sizeOut != nullptr) *sizeOut = link->image.size() + 1;  // with the zero at its end
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  return Runtime::get().links.erase(state) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace simgpu::api
