#include <collector/collectives.h>

#include <algorithm>
#include <array>

namespace flopinj {
namespace {

constexpr std::array<std::string_view, 51> kPatterns = {
    // NVIDIA's libraries. "nccl" covers ncclDevKernel_*, ncclKernel_*, ncclSymDevKernel_* and
    // forks.
    "nccl", "nvshmem", "nvls", "multimem", "mnnvl", "userbuffer", "gpunetio", "doca_gpu", "ibgda",
    "nixl",
    // Other collective libraries: RCCL, oneCCL's CUDA port, MSCCL and MSCCL++, UCC, Gloo, HPC-X.
    "rccl", "oneccl", "msccl", "ucc_ec", "ucc_tl", "gloo_", "sharp_coll", "hpcx", "ctran",
    // Mixture-of-experts dispatch and combine between devices.
    "deep_ep", "deepep", "pplx_", "internode", "intranode", "moe_alltoall", "fused_dispatch",
    // PyTorch's symmetric memory and its distributed package.
    "symmetric_memory", "symm_mem", "c10d",
    // Collectives by name, wherever they come from: vLLM, SGLang, TensorRT-LLM, FlashInfer, Triton.
    "allreduce", "all_reduce", "reducescatter", "reduce_scatter", "allgather", "all_gather",
    "alltoall", "all_to_all", "all2all", "sendrecv", "send_recv", "cross_device_reduce",
    "custom_ar", "quickreduce", "distributed_gemm",
    // Waiting as such: barriers between devices, kernels that wait for a flag.
    "barrier_kernel", "barrierkernel", "multi_gpu", "multigpu", "gpu_barrier", "wait_signal",
    "wait_kernel"};

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool contains(std::string_view text, std::string_view lower_case) {
  const auto same = [](char in_text, char in_pattern) { return lower(in_text) == in_pattern; };
  return std::search(text.begin(), text.end(), lower_case.begin(), lower_case.end(), same) !=
         text.end();
}

}  // namespace

std::span<const std::string_view> never_measured_patterns() { return kPatterns; }

bool must_not_be_measured(std::string_view mangled_name) {
  return std::any_of(kPatterns.begin(), kPatterns.end(),
                     [&](std::string_view p) { return contains(mangled_name, p); });
}

}  // namespace flopinj
