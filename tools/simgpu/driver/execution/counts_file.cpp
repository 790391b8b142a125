#include "driver/execution/counts_file.h"

#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "driver/runtime.h"

namespace simgpu {
namespace {

constexpr int kLaunches = 2;

// In the order of Count.
constexpr const char* kNames[] = {"fadd",
                                  "fmul",
                                  "ffma",
                                  "dadd",
                                  "dmul",
                                  "dfma",
                                  "hadd",
                                  "hmul",
                                  "hfma",
                                  "hadd_one",
                                  "hmul_one",
                                  "hfma_one",
                                  "tensor_fp16",
                                  "tensor_bf16",
                                  "tensor_tf32",
                                  "tensor_fp64",
                                  "tensor_fp8",
                                  "tensor_int8",
                                  "tensor_fp16_to_fp16",
                                  "tensor_int8_sparse",
                                  "tensor_instructions",
                                  "group_fp16",
                                  "group_bf16",
                                  "group_tf32",
                                  "group_fp8",
                                  "group_int8",
                                  "group_instructions",
                                  "dram_read",
                                  "dram_write",
                                  "div_f32",
                                  "div_f64",
                                  "rcp_f32",
                                  "rcp_f64",
                                  "sqrt_f32",
                                  "sqrt_f64",
                                  "approx_div_f32",
                                  "full_div_f32",
                                  "approx_rcp_f32",
                                  "approx_sqrt_f32",
                                  "approx_rsqrt_f32",
                                  "approx_ex2_f32",
                                  "approx_lg2_f32",
                                  "approx_sin_cos_f32",
                                  "shared_add_f32",
                                  "shared_add_f64",
                                  "threads"};
static_assert(std::size(kNames) == static_cast<size_t>(Count::kCountKinds));

std::mutex mutex;

const std::string& path() { return Runtime::get().settings().counts; }

std::string size_text(const uint32_t (&size)[3]) {
  return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);
}

}  // namespace

bool launch_runs(const char* symbol) {
  if (path().empty()) return true;
  static auto* const launched = new std::map<const void*, int>;
  const std::lock_guard lock(mutex);
  return (*launched)[symbol]++ < kLaunches;
}

void write_counts(const KernelRun& run) {
  if (path().empty()) return;
  std::string line =
      std::string(run.symbol) + ";" + size_text(run.grid) + ";" + size_text(run.block) + ";";
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (run.counts.value[i] != 0)
      line += std::string(kNames[i]) + "=" + std::to_string(run.counts.value[i]) + " ";
  line.back() = '\n';
  const std::lock_guard lock(mutex);
  if (std::FILE* const file = std::fopen(path().c_str(), "a")) {
    std::fputs(line.c_str(), file);
    std::fclose(file);
  }
}

}  // namespace simgpu
