// Names as compilers mangle them.
#include <collector/identity/never_measured.h>

#include <string>
#include <string_view>
#include <vector>

#include "catch.h"

using flopinj::NeverMeasured;

namespace {

bool must_not_be_measured(std::string_view name) { return NeverMeasured().contains(name); }

}  // namespace

TEST_CASE("kernels that wait for others are never measured") {
  for (const char* name : {
           "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
           "_Z42ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevCommmP8ncclWork",
           "_ZN7deep_ep9intranode8dispatchILi8ELi768ELi8192EEEvP4int4PfPlPKS2_ii",
           "_ZN7deep_ep12internode_ll7combineILb1EEEvPvi",
           "_Z31nvshmemi_transfer_rma_on_streamPvS_m",
           "_ZN4c10d16symmetric_memory26one_shot_all_reduce_kernelIfLi16ELi8EEEvPPT_S3_m",
           "_ZN4c10d16symmetric_memory14barrier_kernelEPPjimmm",
           "_ZN4vllm26cross_device_reduce_1stageIfLi8EEEvPvS1_i",
           "_ZN12tensorrt_llm7kernels22twoShotAllReduceKernelIfLi8ELb1EEEvi",
           "_ZN7mscclpp10allgather8ILi8EEEvi",
           "_Z15executor_kernelILb1EEvPV26ucc_ec_cuda_executor_statePVjP25ucc_ec_cuda_executor_"
           "task",
           "_Z35userbuffers_fp16_sum_inplace_gpu_rwi",
           "_Z11wait_kernelPVj",
           "_ZN53_GLOBAL__N__8d2d3a31_18_blocking_kernel_cu_1f0b2b5112block_streamEPVKi",
           "_ZN9bytedance4flux21copy_continous_kernelEPvPKvm",
           "_Z24barrier_on_stream_kerneliiiPlS_",
       }) {
    INFO(name);
    CHECK(must_not_be_measured(name));
  }
}

TEST_CASE("ordinary kernels are measured") {
  for (const char* name : {
           "", "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1",
           "ampere_sgemm_128x64_tn",
           "_ZN7cutlass7Kernel2I68cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_"
           "align8EEvNT_6ParamsE",
           "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_10AddFunctorENS0_3ArrEEEviT0_T1_",
           "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpEEEvT1_",
           "_ZN2at6native12_GLOBAL__N_120convertTensor_kernelIN3c108BFloat16EdlEEvPT_",
           "_Z32flash_fwd_splitkv_combine_kerneli", "_Z20softmax_warp_forwardPfPKfi",
           "_Z25multi_tensor_apply_kerneli", "_Z13broadcast_addPfi", "_Z11gather_rowsPfi",
           "_Z18scatter_add_kerneli", "triton_poi_fused_add_mul_0",
           "_Z4convlS_",             // "nvls" by accident
           "_Z14spectransform3Pf",   // "ctran" by accident
           "_ZN3c10dvERKNS_4HalfE",  // c10::operator/, not c10d
       }) {
    INFO(name);
    CHECK_FALSE(must_not_be_measured(name));
  }
}

TEST_CASE("patterns are lower case, and each matches in any case") {
  std::vector<std::string_view> patterns;
  for (const auto list : {flopinj::communication_patterns(), flopinj::waiting_patterns()})
    patterns.insert(patterns.end(), list.begin(), list.end());
  CHECK(patterns.size() > 30);
  for (const std::string_view pattern : patterns) {
    INFO(pattern);
    CHECK(pattern.size() >= 4);
    std::string upper(pattern);
    for (char& c : upper) {
      CHECK_FALSE((c >= 'A' && c <= 'Z'));
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    CHECK(must_not_be_measured("_Z9" + upper + "Pf"));
  }
}

TEST_CASE("patterns of the user come beside the built-in ones, in any case") {
  const NeverMeasured never({"Persistent", "spin"});
  CHECK(never.contains("_Z17persistent_gemmPf"));
  CHECK(never.contains("_Z9SPINUNTILPVi"));
  CHECK(never.contains("_Z14ncclDevKernel_xv"));
  CHECK_FALSE(never.contains("_Z4axpyPf"));
}

TEST_CASE("patterns are read with commas between; an empty one would match every kernel") {
  using List = std::vector<std::string>;
  CHECK(flopinj::parse_patterns("a") == List{"a"});
  CHECK(flopinj::parse_patterns("a,bc") == List{"a", "bc"});
  for (const char* text : {"", ",", "a,", ",a", "a,,b"}) CHECK_FALSE(flopinj::parse_patterns(text));
}
