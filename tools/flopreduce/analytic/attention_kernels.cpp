#include "analytic/attention_kernels.h"

#include <algorithm>
#include <array>

namespace flopinj::reduce {
namespace {

using enum AttentionKernel::Does;

// Forward: two products. Backward: five, since the scores are computed again (Dao,
// FlashAttention-2, section 4.1). Where each block of keys and each block of queries is gone
// through apart, seven: scores and their gradients twice.
constexpr AttentionKernel forward(std::string_view family, bool varies = false) {
  return {kForward, family, 2, 2, varies};
}
constexpr AttentionKernel backward(std::string_view family) { return {kBackward, family, 5, 4}; }
constexpr AttentionKernel apart(std::string_view family) { return {kBackward, family, 7, 4, true}; }
constexpr AttentionKernel keys(std::string_view family) { return {kKeys, family, 4, 3}; }
constexpr AttentionKernel queries(std::string_view family) { return {kQueries, family, 3, 1}; }

constexpr std::string_view kFlash = "FlashAttention", kCudnn = "cuDNN", kCutlass = "CUTLASS",
                           kFlex = "flex_attention", kTriton = "Triton", kFla = "fla";

// A name with all parts of a row is such a kernel's; the first part is where the name begins, if
// `begins`. Tried in this order.
struct Row {
  std::array<std::string_view, 3> parts;
  AttentionKernel kernel;
  bool begins = false;
};
constexpr Row kRows[] = {
    // FlashAttention 2 (csrc/flash_attn/src/flash_fwd_launch_template.h and
    // flash_bwd_launch_template.h): flash_fwd_kernel, flash_fwd_splitkv_kernel,
    // flash_bwd_dq_dk_dv_loop_kernel, flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel, in namespaces
    // flash and pytorch_flash. FlashAttention 4 has names such as
    // flash_bwd_sm100_bf16_head_dim128_tile128x128_...
    // (github.com/Dao-AILab/flash-attention/pull/2564).
    {{"flash_fwd_kernel"}, forward(kFlash)},
    {{"flash_fwd_splitkv_"}, forward(kFlash)},
    {{"flash_fwd_sm"}, forward(kFlash)},
    {{"flash_bwd_"}, backward(kFlash)},
    // FlashAttention 3 (hopper/flash_fwd_kernel_sm90.h, hopper/flash_bwd_launch_template.h), in
    // cutlass::device_kernel<flash::enable_sm90<...>>; 4 (flash_attn/cute), in kernel_cutlass_...
    {{"FlashAttnFwdSm"}, forward(kFlash)},
    {{"FlashAttnBwdSm"}, backward(kFlash)},
    {{"FlashAttentionForwardSm"}, forward(kFlash)},
    {{"FlashAttentionBackwardSm"}, backward(kFlash)},
    // FlashAttention 1, as in github.com/Dao-AILab/flash-attention/issues/300.
    {{"fmha_fwd_loop_kernel"}, forward(kFlash)},
    {{"fmha_bwd_", "dk_dv_loop_"}, backward(kFlash)},
    // cuDNN, and so PyTorch's and TransformerEngine's attention by it, e.g.
    // cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_...
    // cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x4x1_...
    // and cudnn_generated_oss_sdpa_... of its front end.
    {{"sdpa_", "_flash_fprop"}, forward(kCudnn)},
    {{"sdpa_", "_flash_bprop"}, backward(kCudnn)},
    // xFormers and PyTorch (aten/src/ATen/native/transformers/cuda/mem_eff_attention/kernels):
    // fmha_cutlassF_bf16_aligned_64x128_rf_sm80, fmha_cutlassB_f16_aligned_64x64_k64_dropout_sm80.
    {{"fmha_cutlassF_"}, forward(kCutlass)},
    {{"fmha_cutlassB_"}, backward(kCutlass)},
    // CUTLASS, examples 77 and 88: Sm100FmhaFwdKernelTmaWarpspecialized,
    // Sm100FmhaBwdKernelTmaWarpSpecialized, Sm100FmhaBwdMlaKernelTmaWarpSpecialized,
    // FmhaMainloopTmaSm90, FmhaBwdMainloopTmaWarpSpecializedSm90.
    {{"FmhaFwd"}, forward(kCutlass)},
    {{"FmhaMainloopTma"}, forward(kCutlass)},
    {{"FmhaBwd"}, backward(kCutlass)},
    // torch.compile: triton_tem_fused_flex_attention_0, triton_tem_fused_flex_attention_backward_2,
    // triton_tem_fused_flex_attention_backward_mul_1; seven products by its template
    // (torch/_inductor/kernel/flex/templates/flex_backwards.py.jinja).
    {{"triton_tem_fused", "flex_attention", "backward"}, apart(kFlex), true},
    {{"triton_tem_fused", "flex_attention", "bwd"}, apart(kFlex), true},
    {{"triton_tem_fused", "flex_attention"}, forward(kFlex, true), true},
    // Triton's tutorial 06-fused-attention and what was made of it: _attn_fwd, _attn_fwd_tma,
    // _attn_bwd; with a kernel for each gradient _attn_bwd_dkdv, _attn_bwd_dk_dv, _attn_bwd_dq.
    {{"_attn_fwd"}, forward(kTriton, true), true},
    {{"_attn_bwd_dkdv"}, keys(kTriton), true},
    {{"_attn_bwd_dk_dv"}, keys(kTriton), true},
    {{"_attn_bwd_dq"}, queries(kTriton), true},
    {{"_attn_bwd"}, apart(kTriton), true},
    // flash-linear-attention (fla/ops/attn/parallel.py): softmax attention of its own.
    {{"parallel_attn_fwd_kernel"}, forward(kFla, true), true},
    {{"parallel_attn_bwd_kernel_dkv"}, keys(kFla), true},
    {{"parallel_attn_bwd_kernel_dq"}, queries(kFla), true},
    {{"parallel_attn_bwd_kernel_preprocess"}, {kBeside, kFla}, true},
};

// Kernels around these have such words: flash_bwd_dot_do_o_kernel, flash_bwd_convert_dq_kernel,
// flash_bwd_clear_dkvaccum_kernel, flash_fwd_splitkv_combine_kernel, _attn_bwd_preprocess.
// FlashAttnBwdPreprocess, FmhaKernelBwdSumOdO and cuDNN's compute_dot_do_o_specialized have no row.
constexpr std::string_view kBesideWords[] = {"dot_do_o",     "convert_d",  "clear_d",
                                             "splitkv_comb", "preprocess", "postprocess"};

bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

}  // namespace

std::optional<AttentionKernel> attention_kernel(std::string_view name) {
  const auto* const row = std::ranges::find_if(kRows, [&](const Row& r) {
    return (r.begins ? name.starts_with(r.parts[0]) : has(name, r.parts[0])) &&
           has(name, r.parts[1]) && has(name, r.parts[2]);
  });
  if (row == std::end(kRows)) return std::nullopt;
  if (std::ranges::any_of(kBesideWords, [&](std::string_view word) { return has(name, word); }))
    return AttentionKernel{kBeside, row->kernel.family};
  return row->kernel;
}

std::vector<std::string_view> attention_kernel_parts() {
  std::vector<std::string_view> parts(std::begin(kBesideWords), std::end(kBesideWords));
  for (const Row& row : kRows) parts.insert(parts.end(), row.parts.begin(), row.parts.end());
  std::erase(parts, std::string_view());
  return parts;
}

}  // namespace flopinj::reduce
