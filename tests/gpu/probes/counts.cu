// What the counters count.
#include <cuda_fp16.h>

#include <iterator>

#include "probe.h"

namespace probe {
namespace {

// fp16, 16x8x32 sparse and 16x8x16 dense: 8192 and 4096 operations by shape.
__global__ void matrix_products(bool sparse, int steps, float* out) {
#if __CUDA_ARCH__ >= 800
  float d[4] = {};
  const unsigned zero = 0, pattern = 0x44444444;
  for (int i = 0; i < steps; ++i) {
    if (sparse)
      asm volatile(
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 5)
          "mma.sp::ordered_metadata"
#else
          "mma.sp"
#endif
          ".sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, "
          "{%4,%4,%4,%4}, {%0,%1,%2,%3}, %5, 0x0;"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(zero), "r"(pattern));
    else
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, "
          "{%4,%4}, {%0,%1,%2,%3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(zero));
  }
  out[threadIdx.x] = d[0];
#endif
}

// 32 x steps packed multiply-adds, each of four operations.
__global__ void packed_halves(int steps, __half2 a, __half2* out) {
  __half2 x = out[threadIdx.x];
  for (int i = 0; i < steps; ++i) x = __hfma2(x, a, a);
  out[threadIdx.x] = x;
}
__global__ void doubles(int steps, double a, double* out) {
  double x = static_cast<double>(threadIdx.x);
  for (int i = 0; i < steps; ++i) x = __fma_rn(x, a, a);
  out[threadIdx.x] = x;
}

}  // namespace

void sparsity() {
  RangeWindows windows;
  if (!windows.enable()) return;
  constexpr int kSteps = 1000;
  for (const char* metric :
       {"sm__ops_path_tensor_src_fp16.sum", "sm__ops_path_tensor_src_fp16_sparsity_on.sum",
        "sm__ops_path_tensor_src_fp16_sparsity_off.sum",
        "sm__ops_path_tensor_src_fp16_dst_fp32.sum",
        "sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_on.sum",
        "sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum",
        "sm__inst_executed_pipe_tensor_op_hmma.sum"}) {
    const Metrics one = {metric};
    if (!windows.plan(one) || !windows.open(4)) continue;  // not every chip has every name
    matrix_products<<<1, 32>>>(false, kSteps, scratch);
    matrix_products<<<1, 32>>>(true, kSteps, scratch);
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (windows.close() != 2) continue;
    say(std::string("per mma.sync m16n8k16 (4096 operations): ") + metric,
        windows.values(0)[0] / kSteps, "");
    say(std::string("per mma.sp m16n8k32 (8192 operations dense, half of one operand stored): ") +
            metric,
        windows.values(1)[0] / kSteps, "");
  }
  windows.disable();
}

// Hardware counters of several kinds of work, so that what they share shows.
void overlap() {
  RangeWindows windows;
  if (!windows.enable()) return;
  constexpr int kSteps = 1000;
  const char* const kernels[] = {"fp32 multiply-adds", "packed fp16 multiply-adds",
                                 "fp64 multiply-adds", "mma.sync fp16 m16n8k16"};
  for (const char* metric :
       {"sm__inst_executed_pipe_tensor_op_hmma.sum", "sm__inst_executed_pipe_tensor_op_gmma.sum",
        "sm__inst_executed_pipe_tensor_op_dmma.sum", "sm__ops_path_tensor_src_fp16.sum",
        "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32.sum",
        "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum",
        "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
        "smsp__thread_inst_executed_pipe_fma_pred_on.sum",
        "smsp__thread_inst_executed_pipe_fp64_pred_on.sum",
        "smsp__thread_inst_executed_pipe_fma_type_fp16_pred_on.sum"}) {
    if (!windows.plan({metric}) || !windows.open(8)) continue;  // not every chip has every name
    launch(kSteps);
    packed_halves<<<1, 32>>>(kSteps, __float2half2_rn(0.5f), reinterpret_cast<__half2*>(scratch));
    doubles<<<1, 32>>>(kSteps, 0.5, reinterpret_cast<double*>(scratch));
    matrix_products<<<1, 32>>>(false, kSteps, scratch);
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const size_t ranges = windows.close();
    for (size_t i = 0; i < ranges && i < std::size(kernels); ++i)
      say(std::string("one warp, 1000 times ") + kernels[i] + ": " + metric, windows.values(i)[0],
          "");
  }
  windows.disable();
}

}  // namespace probe
