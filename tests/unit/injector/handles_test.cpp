// What is learned of handles, and how parameters are handed over, without a driver: handles are
// numbers here.
#include <injector/handles/kernel_handles.h>
#include <injector/vendor/launch_calls.h>

#include <vector>

#include "catch.h"

using namespace flopinj;
using Kind = KernelHandles::Kind;

namespace {

CUfunction function(uintptr_t n) { return reinterpret_cast<CUfunction>(n); }
CUkernel kernel(uintptr_t n) { return reinterpret_cast<CUkernel>(n); }

}  // namespace

TEST_CASE("a handle is what the last call that gave it says") {
  KernelHandles handles;
  const CUfunction functions[] = {function(1), function(2), nullptr};
  const CUkernel kernels[] = {kernel(2), kernel(3)};
  CHECK(handles.kind(function(1)) == Kind::kUnknown);
  CHECK(handles.learn({functions, nullptr, 3}));
  CHECK(handles.kind(function(2)) == Kind::kFunction);
  CHECK(handles.learn({nullptr, kernels, 2}));  // 2 came back as a kernel
  CHECK(handles.kind(function(1)) == Kind::kFunction);
  CHECK(handles.kind(function(2)) == Kind::kKernel);
  CHECK(handles.kind(function(3)) == Kind::kKernel);
  CHECK(handles.kind(nullptr) == Kind::kUnknown);
}

TEST_CASE("a handle that is repeated from the program says nothing against what is known") {
  KernelHandles handles;
  const CUkernel kernels[] = {kernel(5)};
  const CUfunction cast[] = {function(5), function(6)};
  CHECK(handles.learn({nullptr, kernels, 1}));
  CHECK(handles.learn({cast, nullptr, 2, true}));
  CHECK(handles.kind(function(5)) == Kind::kKernel);
  CHECK(handles.kind(function(6)) == Kind::kFunction);
}

TEST_CASE("handles beyond the bound are told, and what comes then is known") {
  KernelHandles handles;
  std::vector<CUfunction> many;
  for (uintptr_t i = 1; i <= 1U << 18; ++i) many.push_back(function(i));
  CHECK(handles.learn({many.data(), nullptr, many.size()}));
  const CUfunction more[] = {function(1U << 20)};
  CHECK_FALSE(handles.learn({more, nullptr, 1}));
  CHECK(handles.kind(more[0]) == Kind::kFunction);
  CHECK(handles.kind(many[0]) == Kind::kUnknown);
}

TEST_CASE("parameters that are handed over as one buffer are found in any order, with their size") {
  char buffer[24];
  size_t size = sizeof buffer;
  void* const pointer_first[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer,
                                 CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  void* const size_first[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER,
                              buffer, CU_LAUNCH_PARAM_END};
  for (void* const* extra : {pointer_first, size_first}) {
    const ParameterValues values = parameter_values(nullptr, extra);
    CHECK(values.pointers == nullptr);
    CHECK(values.packed == buffer);
    CHECK(values.packed_bytes == sizeof buffer);
  }
}

TEST_CASE("a buffer of unknown size is not read, and a list without an end is not followed on") {
  char buffer[24];
  void* const without_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_END};
  CHECK(parameter_values(nullptr, without_size).packed == nullptr);
  void* endless[16];
  for (void*& entry : endless) entry = buffer;
  CHECK(parameter_values(nullptr, endless).packed == nullptr);
  CHECK(parameter_values(nullptr, nullptr).packed == nullptr);
  void* const parameters[] = {buffer};
  CHECK(parameter_values(parameters, without_size).pointers == parameters);
}
