// Kernels whose instructions could not be counted: tensor work by its counters, and the rest
// between nothing and what its pipes could have done.
#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;
namespace pb = flopinj::trace;

namespace {

constexpr uint32_t kScreening = 1, kTensor = 2, kPipes = 3, kSass = 4, kProduct = 1;
constexpr double kFma = 1000, kFp64 = 10, kHalf = 5;  // instructions of warps
constexpr uint64_t kTensorFlop = 1'000'000;
// A warp's instruction does at most 32 x two lanes x two operations in fp32 (FFMA2) and fp16
// (HFMA2), and 32 x two in fp64.
constexpr uint64_t kMost = 1000 * 128 + 10 * 64 + 5 * 128;

uint32_t bits(std::initializer_list<pb::Interned::SassOperation> operations) {
  uint32_t computes = 1;
  for (const auto operation : operations) computes |= 1U << operation;
  return computes;
}

struct Kernel {
  bool pipes = true, tensor = true, sass = false;
  uint32_t computes = 0;  // 0: its code was not read
};

Report product(const Kernel& k, int fma = 2) {
  TraceBuilder t;
  t.header(1, false, 1, 100, 7);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(kScreening, "screening", {"sm__inst_executed_pipe_tensor_op_hmma.sum"}, false);
  t.group(kTensor, "tensor_bf16", {"sm__ops_path_tensor_src_bf16_dst_fp32.sum"}, false);
  t.group(kPipes, "pipes",
          {"sm__inst_executed_pipe_fma.sum", "sm__inst_executed_pipe_fp64.sum",
           "sm__inst_executed_pipe_fma_type_fp16.sum"},
          false, 1, "sass");
  t.group(kSass, "sass", {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"});
  t.kernel(kProduct, "product", 11, pb::Interned::PARAMETERS_EXACT, k.computes != 0, {},
           k.computes);
  t.samples(kScreening, kProduct, {{64}, {64}});
  if (k.tensor) t.samples(kTensor, kProduct, {{kTensorFlop}, {kTensorFlop}});
  if (k.pipes) t.samples(kPipes, kProduct, {{kFma, kFp64, kHalf}, {kFma, kFp64, kHalf}});
  if (k.sass) t.samples(kSass, kProduct, {{100}, {100}});
  t.tally({{kProduct, 10, 0, 0}});
  t.ledger(10, 10, 0);
  t.end();
  ReduceOptions options;
  options.fma = fma;
  return reduce_bytes({t.bytes()}, std::move(options));
}

}  // namespace

TEST_CASE("a kernel that cannot be instrumented has its tensor FLOP, and a bound of the others") {
  const Report r = product({});
  CHECK(r.total.bounded == 10);
  CHECK(r.total.unmeasured == 0);
  CHECK(to_decimal(r.total.flop) == std::to_string(10 * (kTensorFlop + kMost)));
  CHECK(to_decimal(r.total.doubtful) == std::to_string(10 * kMost));
  const auto figures = json_of(r)["figures"];
  CHECK(figures["flop"].is_null());
  CHECK(figures["flop_at_most"] == 10 * (kTensorFlop + kMost));
  CHECK(figures["bounded_launches"] == 10);
  CHECK(text_of(r).find("10 launches are of kernels that cannot be instrumented") !=
        std::string::npos);
  // Nothing of a bound is said to be matrix work.
  CHECK(to_decimal(r.total.matrix_flop) == std::to_string(10 * kTensorFlop));
}

TEST_CASE("a multiply-add that counts one halves the bound") {
  const Report r = product({}, 1);
  CHECK(to_decimal(r.total.flop) == std::to_string(10 * (kTensorFlop + kMost) / 2));
}

TEST_CASE("the code of a kernel says which instructions its pipes can have run") {
  using I = pb::Interned;
  const auto most = [](uint32_t computes) {
    return to_decimal(product({.computes = computes}).total.doubtful);
  };
  // No arithmetic at all: integer work, and the count is exact.
  const Report exact = product({.computes = bits({})});
  CHECK(to_decimal(exact.total.flop) == std::to_string(10 * kTensorFlop));
  CHECK(exact.total.flop_exact() == false);  // samples that agree are not each launch's own count
  CHECK(exact.total.doubtful == 0);
  CHECK(json_of(exact)["figures"]["flop"] == 10 * kTensorFlop);
  CHECK(most(bits({I::SASS_FADD})) == std::to_string(10 * 1000 * 32));
  CHECK(most(bits({I::SASS_FADD, I::SASS_FFMA})) == std::to_string(10 * 1000 * 64));
  CHECK(most(bits({I::SASS_FFMA2})) == std::to_string(10 * 1000 * 128));
  CHECK(most(bits({I::SASS_DFMA, I::SASS_HMUL})) == std::to_string(10 * (10 * 64 + 5 * 64)));
}

TEST_CASE("a count goes before a bound, and without either there is none") {
  const Report counted = product({.sass = true});
  CHECK(counted.total.bounded == 0);
  CHECK(to_decimal(counted.total.flop) == std::to_string(10 * (kTensorFlop + 200)));
  CHECK(product({.pipes = false}).total.unmeasured == 10);
}

TEST_CASE("tensor work that was seen and not counted is no bound") {
  CHECK(product({.tensor = false}).total.unmeasured == 10);
}
