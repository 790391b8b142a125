// Weights per metric, and which tensor metrics hold which.
#include "model/formulas.h"

#include "catch.h"

using namespace flopinj::reduce;

namespace {

// FLOP of one launch from metrics with one sample each.
std::string flop_of(const std::vector<std::pair<std::string, double>>& metrics, int fma = 2) {
  NamePool names;
  SampleSet set;
  bool full = false;
  const uint32_t group = names.intern("g", full);
  for (const auto& [name, value] : metrics) set.metric(names.intern(name, full)).add(value);
  set.group(group) = 1;
  Formulas formulas(fma);
  const SignatureFlop flop = formulas.evaluate(&set, {group}, names);
  if (flop.status == FlopStatus::kTensorNotSampled) return "tensor not sampled";
  if (flop.status == FlopStatus::kTensorNotCovered) return "tensor not covered";
  return to_decimal(flop.of(0, 1, 1).total);
}

const std::string kTensor = "sm__ops_path_tensor_";

}  // namespace

TEST_CASE("a packed half instruction works on two lanes") {
  CHECK(flop_of({{"smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", 1}}) == "2");
  CHECK(flop_of({{"smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", 1}}) == "2");
  CHECK(flop_of({{"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 1}}) == "4");
  CHECK(flop_of({{"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 1}}, 1) == "2");
  CHECK(flop_of({{"smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum", 1}}) == "4");
  CHECK(flop_of({{"smsp__sass_thread_inst_executed_op_fadd2_pred_on.sum", 1}}) == "2");
}

TEST_CASE("a parent tensor metric is never added to its children") {
  const auto parent = std::pair{kTensor + "src_bf16_dst_fp32.sum", 1000.0};
  const auto hmma = std::pair{kTensor + "op_hmma_src_bf16_dst_fp32.sum", 400.0};
  const auto hgmma = std::pair{kTensor + "op_hgmma_src_bf16_dst_fp32.sum", 600.0};
  const auto sparse = std::pair{kTensor + "op_hgmma_src_bf16_dst_fp32_sparsity_on.sum", 100.0};
  const auto dense = std::pair{kTensor + "op_hgmma_src_bf16_dst_fp32_sparsity_off.sum", 500.0};
  CHECK(flop_of({parent}) == "1000");
  CHECK(flop_of({hmma, parent, hgmma, sparse, dense}) == "1000");
  CHECK(flop_of({sparse, hmma, hgmma, dense}) == "1000");
  CHECK(flop_of({sparse, dense}) == "600");
  CHECK(flop_of({hmma, {kTensor + "op_hmma_src_fp16.sum", 7}}) == "407");
  CHECK(flop_of({{kTensor + "src_fp16.sum", 30}, {kTensor + "src_fp16_dst_fp16.sum", 10}}) == "30");
}

TEST_CASE("tensor operations count a multiply-add as two") {
  CHECK(flop_of({{kTensor + "src_tf32_dst_fp32.sum", 2048}}) == "2048");
  CHECK(flop_of({{kTensor + "src_tf32_dst_fp32.sum", 2048}}, 1) == "1024");
}

TEST_CASE("integer work is not floating point") {
  CHECK(flop_of({{kTensor + "src_int8.sum", 5}}) == "0");
  CHECK(flop_of({{"sm__inst_executed_pipe_tensor_op_imma.sum", 5}}) == "0");
}

TEST_CASE("tensor instructions need a tensor count that saw them") {
  const auto seen = std::pair{std::string("sm__inst_executed_pipe_tensor_op_hmma.sum"), 8.0};
  const auto none = std::pair{kTensor + "src_bf16_dst_fp32.sum", 0.0};
  CHECK(flop_of({seen}) == "tensor not sampled");
  CHECK(flop_of({seen, none}) == "tensor not covered");
  CHECK(flop_of({{"sm__inst_executed_pipe_tensor_op_hmma.sum", 0}}) == "0");
  // HFMA2.MMA runs on that pipe, and is counted among the instructions.
  CHECK(flop_of({seen, none, {"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 3}}) == "12");
}

TEST_CASE("metrics of no known formula count nothing") {
  CHECK(flop_of({{"dram__bytes_read.sum", 1e9}, {"gpu__time_duration.sum", 5}, {"", 3}}) == "0");
  CHECK(flop_of({{kTensor, 3}, {kTensor + "src.sum", 3}, {kTensor + "src_.avg", 3}}) == "0");
}

TEST_CASE("precisions beyond the table share the last place") {
  NamePool names;
  SampleSet set;
  bool full = false;
  const uint32_t group = names.intern("g", full);
  for (int i = 0; i < 100; ++i)
    set.metric(names.intern(kTensor + "src_x" + std::to_string(i) + ".sum", full)).add(1);
  set.group(group) = 1;
  Formulas formulas(2);
  CHECK(to_decimal(formulas.evaluate(&set, {group}, names).of(0, 1, 1).total) == "100");
  CHECK(formulas.precisions().size() == kMaxPrecisions);
}
