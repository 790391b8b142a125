// Matrix products of cuBLAS and cublasLt in every precision, at sizes that fill their tiles and
// sizes that do not.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_fp8.h>

#include "cases.h"

using gputest::device_array;
using gputest::field;
using gputest::run_case;

namespace {

void check(cublasStatus_t result, const char* what) {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "%s: cuBLAS status %d\n", what, static_cast<int>(result));
  std::exit(1);
}

struct Size {
  int m, n, k;
};
constexpr Size kSizes[] = {
    {8192, 8192, 8192}, {8191, 4097, 1023}, {1024, 1024, 64}, {1024, 1024, 4096}};
constexpr size_t kLargest = size_t{8192} * 8192;
constexpr size_t kWorkspace = size_t{64} << 20;

// Slow kinds of the largest size are launched less often, so that the whole program stays under a
// minute.
int repeats(const Size& s, bool slow) { return slow && s.m * 1.0 * s.n * s.k > 1e11 ? 16 : 48; }

std::string name(const char* kind, const Size& s) {
  return std::string("cublas_") + kind + "_" + std::to_string(s.m) + "x" + std::to_string(s.n) +
         "x" + std::to_string(s.k);
}
std::string shape(const Size& s) {
  return field("m", s.m) + ", " + field("n", s.n) + ", " + field("k", s.k);
}

struct Buffers {
  void *a, *b, *c, *workspace;
};

struct Kind {
  const char* name;
  cudaDataType_t type;
  cublasComputeType_t compute;
  bool slow;
};
constexpr Kind kKinds[] = {{"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F, false},
                           {"fp16", CUDA_R_16F, CUBLAS_COMPUTE_32F, false},
                           {"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, false},
                           {"fp32", CUDA_R_32F, CUBLAS_COMPUTE_32F, true},
                           {"fp64", CUDA_R_64F, CUBLAS_COMPUTE_64F, true}};

void product(cublasHandle_t handle, const Kind& kind, const Size& s, const Buffers& buffers) {
  const bool is_double = kind.compute == CUBLAS_COMPUTE_64F;
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const void* alpha = is_double ? static_cast<const void*>(&one64) : &one;
  const void* beta = is_double ? static_cast<const void*>(&zero64) : &zero;
  run_case(name(kind.name, s), std::string("blas_") + kind.name, shape(s), repeats(s, kind.slow),
           [&] {
             check(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, s.m, s.n, s.k, alpha, buffers.a,
                                kind.type, s.m, buffers.b, kind.type, s.k, beta, buffers.c,
                                kind.type, s.m, kind.compute, CUBLAS_GEMM_DEFAULT),
                   kind.name);
           });
}

// E4M3 with a bf16 result. cublasLt wants the first operand transposed and all dimensions divisible
// by 16.
void product_fp8(cublasLtHandle_t handle, const Size& s, const Buffers& buffers,
                 const float* scale) {
  cublasLtMatmulDesc_t operation;
  check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  const cublasOperation_t transposed = CUBLAS_OP_T;
  check(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                       sizeof transposed),
        "TRANSA");
  for (const auto attribute :
       {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER})
    check(cublasLtMatmulDescSetAttribute(operation, attribute, &scale, sizeof scale),
          "SCALE_POINTER");
  cublasLtMatrixLayout_t a, b, c;
  check(cublasLtMatrixLayoutCreate(&a, CUDA_R_8F_E4M3, s.k, s.m, s.k), "layout of A");
  check(cublasLtMatrixLayoutCreate(&b, CUDA_R_8F_E4M3, s.k, s.n, s.k), "layout of B");
  check(cublasLtMatrixLayoutCreate(&c, CUDA_R_16BF, s.m, s.n, s.m), "layout of C");
  cublasLtMatmulPreference_t preference;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &kWorkspace, sizeof kWorkspace),
        "MAX_WORKSPACE_BYTES");
  cublasLtMatmulHeuristicResult_t choice{};
  int found = 0;
  check(
      cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, c, c, preference, 1, &choice, &found),
      "no fp8 algorithm");
  if (found == 0) check(CUBLAS_STATUS_NOT_SUPPORTED, "no fp8 algorithm");
  const float one = 1, zero = 0;
  run_case(name("fp8", s), "blas_fp8", shape(s), repeats(s, false), [&] {
    check(cublasLtMatmul(handle, operation, &one, buffers.a, a, buffers.b, b, &zero, buffers.c, c,
                         buffers.c, c, &choice.algo, buffers.workspace, kWorkspace, nullptr),
          "cublasLtMatmul");
  });
}

}  // namespace

int main() {
  cudaDeviceProp gpu{};
  gputest::check(cudaGetDeviceProperties(&gpu, 0), "cudaGetDeviceProperties");
  const Buffers buffers{device_array<double>(kLargest), device_array<double>(kLargest),
                        device_array<double>(kLargest), device_array<char>(kWorkspace)};
  cublasHandle_t handle;
  check(cublasCreate(&handle), "cublasCreate");
  check(cublasSetWorkspace(handle, buffers.workspace, kWorkspace), "cublasSetWorkspace");
  for (const Kind& kind : kKinds) {
    if (gpu.major < 8 && (kind.type == CUDA_R_16BF || kind.compute == CUBLAS_COMPUTE_32F_FAST_TF32))
      continue;
    // Without tensor cores for fp64 (all but the large chips) the largest product takes seconds.
    const bool fast_fp64 = (gpu.major == 8 || gpu.major == 9 || gpu.major == 10) && gpu.minor == 0;
    for (const Size& size : kSizes)
      if (kind.type != CUDA_R_64F || fast_fp64 || size.m != 8192)
        product(handle, kind, size, buffers);
  }
  if (gpu.major * 10 + gpu.minor >= 89) {
    const auto* scale = device_array<float>(1);  // zero: the data are zeros anyway
    cublasLtHandle_t lt;
    check(cublasLtCreate(&lt), "cublasLtCreate");
    for (const Size& size : {Size{8192, 8192, 8192}, Size{8176, 4112, 1040}})
      product_fp8(lt, size, buffers, scale);
  }
  return 0;
}
