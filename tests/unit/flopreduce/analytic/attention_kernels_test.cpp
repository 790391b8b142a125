// Names of kernels as published: in profiles of others, in issues of the libraries, and in their
// sources. What a kernel of that name computes is counted by hand: products for each pair of a
// query and a key, and those among them that the model needs.
#include "analytic/attention_kernels.h"

#include <string>

#include "anonymous/names.h"
#include "catch.h"

using namespace flopinj::reduce;
using Does = AttentionKernel::Does;

namespace {

// Forward: scores, result. Backward of one kernel: scores again, gradients by scores, values,
// queries and keys. Of two: by keys and values (scores again, gradients by scores, values, keys),
// and by queries (scores and gradients by scores again, gradient by queries).
struct Published {
  const char* name;
  Does does;
  int products, needed;
};
constexpr Published kPublished[] = {
    // A profile of a 7B transformer on two H100 (GindaChen/nsys-ai, tests/fixtures).
    {"_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi128ELi128ELi64ELi4ELb0ELb0EN7cutlass1"
     "0bfloat16_tE19Flash_kernel_traitsILi128ELi128ELi64ELi4ES3_EELb0ELb0ELb0ELb0ELb0ELb1ELb0ELb0EE"
     "EvNS_16Flash_fwd_paramsE",
     Does::kForward, 2, 2},
    // BERT on an H100 (AMD-AGI/TraceLens, tests/traces/h100).
    {"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, "
     "false, false, cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<64, 128, 128, 4, "
     "cutlass::bfloat16_t> >, false, false, false, false, false, true, false, false>",
     Does::kForward, 2, 2},
    {"void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, "
     "cutlass::bfloat16_t>>",
     Does::kForward, 2, 2},
    // Dao-AILab/flash-attention, issues 420 and 300.
    {"_Z44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI23Flash_bwd_kernel_traitsILi128ELi64ELi128EL"
     "i8ELi2ELi4ELi2ELb0ELb0EN7cutlass6half_tE19Flash_kernel_traitsILi128ELi64ELi128ELi8ES2_EELb1EL"
     "b0ELb0ELb0EEv16Flash_bwd_params",
     Does::kBackward, 5, 4},
    {"_Z29fmha_bwd_dq_dk_dv_loop_kernelI18FMHA_kernel_traitsILi128ELi64ELi16ELi1ELi8ELj8E13__nv_bfl"
     "oat16ELb0ELb0ELi2EEv17FMHA_dgrad_params",
     Does::kBackward, 5, 4},
    {"_Z40fmha_bwd_q_dk_dv_loop_seqparallel_kernelI18FMHA_kernel_traitsILi128ELi64ELi16ELi1ELi8ELj8"
     "E13__nv_bfloat16ELb0ELb0EEv17FMHA_dgrad_params",
     Does::kBackward, 5, 4},
    {"_Z25flash_bwd_dot_do_o_kernelILb1E23Flash_bwd_kernel_traitsILi128ELi64ELi64EN7cutlass6half_tE"
     "EEv16Flash_bwd_params",
     Does::kBeside, 0, 0},
    {"_Z27flash_bwd_convert_dq_kernelI23Flash_bwd_kernel_traitsILi128ELi64ELi128ELi8ELi2ELi4ELi2ELb"
     "0ELb0EN7cutlass6half_tEEEv16Flash_bwd_params",
     Does::kBeside, 0, 0},
    {"void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<(int)128, (int)64>>",
     Does::kBeside, 0, 0},
    // FlashAttention 3 on H100s.
    {"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::"
     "CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, cute::tuple<"
     "cute::C<128>, cute::C<80>, cute::C<256> >, 256, cutlass::bfloat16_t, float>>>>",
     Does::kForward, 2, 2},
    {"void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnBwdSm90<flash::"
     "CollectiveMainloopBwdSm90<2, 2, 2>>>>",
     Does::kBackward, 5, 4},
    // FlashAttention 4 (Dao-AILab/flash-attention, pull 2564: before and after).
    {"kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at__tens"
     "or0000o11101213_0",
     Does::kForward, 2, 2},
    {"flash_bwd_sm100_bf16_head_dim128_tile128x128_q_stages2_dout_stages2_threads384_q_subtile2_cau"
     "sal_use_2cta_cluster_size2_kernel_cutlass_kernel_flash_attncuteflash_bwd_sm100FlashAttentionB"
     "ackwardSm100_object_at__tensor0000o11101213_0",
     Does::kBackward, 5, 4},
    // cuDNN under PyTorch and TransformerEngine, on A100, H100 and B200.
    {"cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_3_64x64x128_4x1x1_kernel0_0",
     Does::kForward, 2, 2},
    {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x256_4x1x1_kernel0_"
     "0",
     Does::kForward, 2, 2},
    {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x4x1_cga1x1x1_"
     "kernel0_0",
     Does::kBackward, 5, 4},
    {"cudnn_generated_fort_native_sdpa_sm100_flash_fprop_f16", Does::kForward, 2, 2},
    {"cudnn_generated_oss_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_"
     "0",
     Does::kForward, 2, 2},
    // PyTorch's and xFormers' kernels of CUTLASS.
    {"fmha_cutlassF_f16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::hal"
     "f_t, cutlass::arch::Sm80, true, 64, 128, 128, true, true>::Params)",
     Does::kForward, 2, 2},
    {"fmha_cutlassB_f16_aligned_64x64_k64_dropout_sm80(PyTorchMemEffAttention::AttentionBackwardKer"
     "nel<cutlass::arch::Sm80, cutlass::half_t, true, true, true, 64, 64, 64, false>::Params)",
     Does::kBackward, 5, 4},
    {"fmha_cutlassB_f16_aligned_64x64_k32_seqaligned_sm70", Does::kBackward, 5, 4},
    {"void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaFwdKernelTmaWarpspecialized<>>",
     Does::kForward, 2, 2},
    {"void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaBwdKernelTmaWarpSpecialized<>>",
     Does::kBackward, 5, 4},
    {"void "
     "cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaBwdMlaKernelTmaWarpSpecialized<>>",
     Does::kBackward, 5, 4},
    // torch.compile (pytorch/pytorch; meta-pytorch/tritonbench, pull 940).
    {"triton_tem_fused_flex_attention_0", Does::kForward, 2, 2},
    {"triton_tem_fused_flex_attention_backward_2", Does::kBackward, 7, 4},
    {"triton_tem_fused_flex_attention_backward_mul_1", Does::kBackward, 7, 4},
    {"triton_tem_fused_flex_attention_backward_zeros_1", Does::kBackward, 7, 4},
    // Triton's tutorial 06, and kernels made of it.
    {"_attn_fwd", Does::kForward, 2, 2},
    {"_attn_fwd_tma", Does::kForward, 2, 2},
    {"_attn_fwd_0d1d2d34d5d6de", Does::kForward, 2, 2},
    {"_attn_bwd", Does::kBackward, 7, 4},
    {"_attn_bwd_dkdv", Does::kKeys, 4, 3},
    {"_attn_bwd_dk_dv", Does::kKeys, 4, 3},
    {"_attn_bwd_dq", Does::kQueries, 3, 1},
    {"_attn_bwd_preprocess", Does::kBeside, 0, 0},
    // flash-linear-attention's softmax attention.
    {"parallel_attn_fwd_kernel", Does::kForward, 2, 2},
    {"parallel_attn_bwd_kernel_dkv", Does::kKeys, 4, 3},
    {"parallel_attn_bwd_kernel_dq", Does::kQueries, 3, 1},
    {"parallel_attn_bwd_kernel_preprocess", Does::kBeside, 0, 0},
};

// No attention, or not by their names alone.
constexpr const char* kOthers[] = {
    "",
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char>",
    "void flash::prepare_varlen_num_blocks_kernel<1, true>",
    "void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::tuple<cute::C<64>>>>",
    "void "
    "cutlass::device_kernel<flash::FlashAttnBwdPostprocessConvertdQ<cute::tuple<cute::C<64>>>>",
    "void cudnn::fusion::compute_dot_do_o_specialized<true, 128>",
    "void cudnn::fusion::compute_dot_do_o_ragged_specialized<true, 128>",
    "cutlass::fmha::kernel::FmhaKernelBwdSumOdO",
    "cutlass::fmha::kernel::FmhaKernelBwdConvert",
    "triton_tem_fused__to_copy_addmm_gelu_t_view_9",
    "triton_poi_fused_flex_attention_0",
    "triton_red_fused_flex_attention_backward_1",
    "my_attn_fwd_of_something",  // begins otherwise
    "_fwd_kernel",
    "_bwd_kernel",
    "attn_softmax",
    "chunk_fwd_kernel_o",
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN",
    "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
    "fused_recurrent_gated_delta_rule_packed_decode_kernel",
};

}  // namespace

TEST_CASE("attention kernels: published names, and the products that they compute") {
  for (const Published& one : kPublished) {
    INFO(one.name);
    const auto kernel = attention_kernel(one.name);
    REQUIRE(kernel);
    CHECK(kernel->does == one.does);
    CHECK(kernel->products == one.products);
    CHECK(kernel->needed == one.needed);
  }
}

TEST_CASE("attention kernels: other names are none") {
  for (const char* name : kOthers) {
    INFO(name);
    CHECK_FALSE(attention_kernel(name));
  }
}

TEST_CASE("attention kernels: their names are known once a trace is anonymous") {
  const AnonymousNames anonymous(KeyedHash({1, 2}));
  for (const Published& one : kPublished) {
    const std::string name = anonymous.name(one.name);
    INFO(one.name << " is " << name);
    const auto kernel = attention_kernel(name);
    REQUIRE(kernel);
    CHECK(kernel->does == one.does);
    CHECK(kernel->products == one.products);
  }
  for (const char* name : kOthers) CHECK_FALSE(attention_kernel(anonymous.name(name)));
}
