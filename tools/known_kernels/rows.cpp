#include "known_kernels/rows.h"

#include <algorithm>

#include "doctor_findings.h"

namespace flopinj::known_kernels {
namespace {

constexpr std::string_view kInstructions = "instructions.ptx", kProducts = "products.ptx",
                           kFp8 = "products_fp8.ptx", kGroups = "warpgroups.ptx";
constexpr uint32_t kWarp = 32, kGroup = 128;

bool everywhere(uint32_t) { return true; }
bool on_turing(uint32_t capability) { return capability == 75; }  // one counter for three formats
bool not_on_turing(uint32_t capability) { return !on_turing(capability); }
bool since_ampere(uint32_t capability) { return capability >= 80; }
bool on_hopper(uint32_t capability) { return capability == 90; }
// Hopper and the large Blackwells make products in fp16, and additions, of it.
bool with_fp8(uint32_t capability) { return capability == 89 || capability >= 120; }

constexpr Work tile(std::string_view precision, uint64_t m, uint64_t n, uint64_t k,
                    uint32_t unit = kWarp) {
  return {.precision = precision, .each = 2 * m * n * k, .unit = unit};
}
constexpr Row group(std::string_view name, std::string_view kernel, std::string_view precision,
                    uint64_t k) {
  return {name, kGroups, kernel, on_hopper, {tile(precision, 64, 16, k, kGroup)}};
}

// Blocks that take all registers of a multiprocessor.
constexpr Row full(std::string_view name, std::string_view shows = {}) {
  return {.name = name,
          .module = kInstructions,
          .kernel = "full_block",
          .runs_on = everywhere,
          .work = {Work{"fp32", 48}},
          .threads = 1'024,
          .launches = 24,
          .alone = true,
          .shows = shows};
}
// Three groups of warps; where the first one hands its registers on, it multiplies nothing.
constexpr Row large(std::string_view name, std::string_view kernel, uint32_t idle,
                    std::string_view shows = {}) {
  Work product = tile("tensor_fp16", 64, 64, 16, kGroup);
  product.idle = idle;
  return {.name = name,
          .module = kGroups,
          .kernel = kernel,
          .runs_on = on_hopper,
          .work = {product, Work{.precision = "fp32", .each = 80, .once = true, .idle = idle}},
          .threads = 384,
          .launches = 24,
          .alone = true,
          .shows = shows};
}

constexpr Row kRows[] = {
    {"FADD", kInstructions, "fadd_chain", everywhere, {Work{"fp32", 1}}},
    {"FMUL", kInstructions, "fmul_chain", everywhere, {Work{"fp32", 1}}},
    {"FFMA", kInstructions, "ffma_chain", everywhere, {Work{"fp32", 2}}},
    {"DFMA", kInstructions, "dfma_chain", everywhere, {Work{"fp64", 2}}},
    {"HFMA2", kInstructions, "hfma2_chain", everywhere, {Work{"fp16", 4}}},
    {"wmma fp16", kInstructions, "product_fp16", not_on_turing, {tile("tensor_fp16", 16, 16, 16)}},
    {"wmma fp16",
     kInstructions,
     "product_fp16",
     on_turing,
     {tile("tensor_fp16_bf16_tf32", 16, 16, 16)}},
    {"mma bf16", kProducts, "product_bf16", since_ampere, {tile("tensor_bf16", 16, 8, 16)}},
    {"mma tf32", kProducts, "product_tf32", since_ampere, {tile("tensor_tf32", 16, 8, 8)}},
    {"mma fp64", kProducts, "product_fp64", since_ampere, {tile("tensor_fp64", 8, 8, 4)}},
    {"mma int8", kProducts, "product_int8", since_ampere, {tile("tensor_int8", 16, 8, 32)}},
    {"mma fp8", kFp8, "product_fp8", with_fp8, {tile("tensor_fp8", 16, 8, 32)}},
    group("wgmma fp16", "group_fp16", "tensor_fp16", 16),
    group("wgmma bf16", "group_bf16", "tensor_bf16", 16),
    group("wgmma tf32", "group_tf32", "tensor_tf32", 8),
    group("wgmma fp8", "group_fp8", "tensor_fp8", 32),
    group("wgmma int8", "group_int8", "tensor_int8", 32),
    {.name = "graph",
     .module = kInstructions,
     .kernel = "ffma_chain",
     .runs_on = everywhere,
     .work = {Work{"fp32", 2}},
     .way = Way::kInGraph,
     .alone = true},
    {.name = "beside one that waits",
     .module = kInstructions,
     .kernel = "ffma_chain",
     .runs_on = everywhere,
     .work = {Work{"fp32", 2}},
     .way = Way::kBesideWaiting,
     .alone = true},
    {.name = "copy",
     .module = kInstructions,
     .kernel = "copy",
     .runs_on = everywhere,
     .way = Way::kTimed,
     .launches = 32,
     .alone = true},
    full("1,024 x 64"),
    full("1,024 x 64, counted", kRegisters),
    large("384 x 168", "large", 0),
    large("384 x 168, counted", "large", 0, kRegisters),
    large("setmaxnreg", "large_handing_on", 128),
    large("setmaxnreg, counted", "large_handing_on", 128, kHandedOn),
};

}  // namespace

std::span<const Row> rows() { return kRows; }

const Row* find_row(std::string_view name) {
  const Row* const at = std::ranges::find(kRows, name, &Row::name);
  return at != std::end(kRows) ? at : nullptr;
}

uint64_t operations(const Row& row, const Work& work) {
  const uint64_t units = uint64_t{kBlocks} * (row.threads - work.idle) / work.unit;
  return units * work.each * (work.once ? 1 : kSteps);
}

}  // namespace flopinj::known_kernels
