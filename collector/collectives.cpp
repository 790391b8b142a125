#include <collector/collectives.h>

#include <algorithm>
#include <iterator>

namespace flopinj {
namespace {

// Mangled names hold one-letter type codes and lengths, so short patterns turn up where nobody
// wrote them ("conv" and a long and a substitution make "convlS_"): these are as long as
// they can be.
constexpr std::string_view kPatterns[] = {
    // NVIDIA's libraries. "nccl" covers ncclDevKernel_*, ncclKernel_*, ncclSymDevKernel_*, the forks
    // and RCCL's kernels.
    "nccl", "nvshmem", "multimem", "mnnvl", "userbuffer", "gpunetio", "doca_gpu", "ibgda", "nixl_",
    // Other collective libraries: oneCCL, MSCCL and MSCCL++, UCC, HPC-X with SHARP, Horovod.
    "oneccl", "rccl_", "msccl", "ucc_ec", "ucc_tl", "hpcx", "sharp_coll", "horovod",
    // Mixture-of-experts dispatch and combine between devices.
    "deep_ep", "deepep", "pplx_", "internode", "intranode", "fused_dispatch",
    // PyTorch's symmetric memory and its distributed package (namespace c10d).
    "symmetric_memory", "symm_mem", "4c10d",
    // Collectives by name, wherever they come from: vLLM, SGLang, TensorRT-LLM, FlashInfer, Triton.
    "allreduce", "all_reduce", "reducescatter", "reduce_scatter", "allgather", "all_gather",
    "alltoall", "all_to_all", "all2all", "sendrecv", "send_recv", "cross_device_reduce",
    "quickreduce", "distributed_gemm",
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
  return std::any_of(std::begin(kPatterns), std::end(kPatterns),
                     [&](std::string_view p) { return contains(mangled_name, p); });
}

}  // namespace flopinj
