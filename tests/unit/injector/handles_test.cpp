// What is learned of handles, without a driver: handles are numbers here.
#include <injector/handles/kernel_handles.h>

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
