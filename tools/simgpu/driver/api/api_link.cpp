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

// What kernels use of libcudadevrt.a, in PTX: the barrier of a grid, as cooperative_groups has it.
constexpr std::string_view kDeviceRuntime = R"(
.version 6.0
.target sm_70
.address_size 64
.visible .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  mov.u32 %r1, %envreg1;
  mov.u32 %r2, %envreg2;
  mov.b64 %rd1, {%r2, %r1};
  st.param.b64 [result], %rd1;
  ret;
}
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [handle];
  bar.sync 0;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %tid.z;
  or.b32 %r1, %r1, %r2;
  or.b32 %r1, %r1, %r3;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  mov.u32 %r4, %nctaid.x;
  mov.u32 %r5, %nctaid.y;
  mov.u32 %r6, %nctaid.z;
  mul.lo.u32 %r4, %r4, %r5;
  mul.lo.u32 %r4, %r4, %r6;
  sub.u32 %r4, 0x80000001, %r4;
  mov.u32 %r7, %ctaid.x;
  mov.u32 %r8, %ctaid.y;
  mov.u32 %r9, %ctaid.z;
  or.b32 %r7, %r7, %r8;
  or.b32 %r7, %r7, %r9;
  setp.eq.u32 %p2, %r7, 0;
  selp.b32 %r10, %r4, 1, %p2;
  atom.add.release.gpu.u32 %r11, [%rd1+4], %r10;
WAIT:
  ld.acquire.gpu.u32 %r12, [%rd1+4];
  xor.b32 %r13, %r11, %r12;
  setp.ge.s32 %p3, %r13, 0;
  @%p3 bra WAIT;
DONE:
  bar.sync 0;
  st.param.b32 [result], 0;
  ret;
}
)";

CUresult add(Link& link, CUjitInputType type, const void* data, size_t bytes, const char* name,
             const JitLog& own_log) {
  if (data == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(link.mutex);
  const JitLog& log = own_log.bytes != nullptr ? own_log : link.errors;
  if (!link.image.empty()) return CUDA_ERROR_INVALID_VALUE;  // it is complete
  if (type == CU_JIT_INPUT_LIBRARY && name != nullptr &&
      std::string_view(name).ends_with("cudadevrt.a")) {
    link.text.append(kDeviceRuntime);
    return CUDA_SUCCESS;
  }
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
