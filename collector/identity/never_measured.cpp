#include <collector/identity/never_measured.h>

#include <algorithm>

namespace flopinj {
namespace {

// Mangled names hold one-letter type codes and lengths, so short patterns turn up where none was
// written ("conv" and a long and a substitution make "convlS_"): these are as long as they can be.
constexpr std::string_view kCommunication[] = {
    // NVIDIA's libraries. "nccl" covers ncclDevKernel_*, ncclKernel_*, ncclSymDevKernel_*, the
    // forks and RCCL's kernels.
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

constexpr std::string_view kWaiting[] = {
    // nvbench: holds a stream back until the host sets a flag. Others say so in their name.
    "12block_stream", "wait_for_",
    // Flux: products that wait tile by tile for what other devices send.
    "9bytedance4flux",
    // Transformer Engine's userbuffers: wait for tiles that another launch makes.
    "consumer_kernel", "consumer_batch",
    // Open-source relatives of NVSHMEM whose kernels do not carry its name.
    "barrier_on_stream", "sync_on_stream", "barrier_all", "wait_until_on_stream"};

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool contains(std::string_view text, std::string_view lower_case) {
  const auto same = [](char in_text, char in_pattern) { return lower(in_text) == in_pattern; };
  return std::search(text.begin(), text.end(), lower_case.begin(), lower_case.end(), same) !=
         text.end();
}

bool any_in(std::string_view name, const auto& patterns) {
  return std::ranges::any_of(patterns, [&](std::string_view p) { return contains(name, p); });
}

}  // namespace

std::span<const std::string_view> communication_patterns() { return kCommunication; }
std::span<const std::string_view> waiting_patterns() { return kWaiting; }

NeverMeasured::NeverMeasured(const std::vector<std::string>& more) : more_(more) {
  for (std::string& pattern : more_) std::ranges::transform(pattern, pattern.begin(), lower);
}

bool NeverMeasured::contains(std::string_view mangled_name) const {
  return any_in(mangled_name, kCommunication) || any_in(mangled_name, kWaiting) ||
         any_in(mangled_name, more_);
}

std::optional<std::vector<std::string>> parse_patterns(std::string_view text) {
  std::vector<std::string> patterns;
  for (;;) {
    const size_t comma = text.find(',');
    patterns.emplace_back(text.substr(0, comma));
    if (patterns.back().empty()) return std::nullopt;
    if (comma == std::string_view::npos) return patterns;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace flopinj
