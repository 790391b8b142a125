// With a driver that the test plays.
#include <injector/counters/access/green_context.h>

#include "catch.h"

using namespace flopinj;

namespace {

const auto kPlain = reinterpret_cast<CUstream>(0x10), kGreen = reinterpret_cast<CUstream>(0x20),
           kGone = reinterpret_cast<CUstream>(0x30);
bool own_stream_is_green = false;

CUresult stream_get_green_ctx(CUstream stream, CUgreenCtx* out) {
  const bool green = stream == kGreen || (stream == CU_STREAM_PER_THREAD && own_stream_is_green);
  *out = green ? reinterpret_cast<CUgreenCtx>(0x1) : nullptr;
  return stream == kGone ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // namespace

TEST_CASE("a launch is on a green context where its stream is") {
  CudaApi cuda;
  CHECK_FALSE(on_green_context(cuda, kGreen, false));  // a driver without green contexts
  cuda.StreamGetGreenCtx = stream_get_green_ctx;
  CHECK(on_green_context(cuda, kGreen, false));
  CHECK_FALSE(on_green_context(cuda, kPlain, false));
  CHECK_FALSE(on_green_context(cuda, kGone, false));
  own_stream_is_green = true;
  CHECK_FALSE(on_green_context(cuda, nullptr, false));
  CHECK(on_green_context(cuda, nullptr, true));
}
