// Weights per metric, and which tensor metrics hold which.
#include "tables/formulas.h"

#include <map>
#include <string>
#include <vector>

#include "catch.h"

using namespace flopinj::reduce;

namespace {

RequiredGroups only(uint32_t group) {
  RequiredGroups required;
  required.add(group, true, {});
  return required;
}

// What one launch did, from metrics with one sample each.
Flop work_of(const std::vector<std::pair<std::string, double>>& metrics, int fma,
             Formulas* formulas) {
  NamePool names;
  SampleSet set;
  bool full = false;
  const uint32_t group = names.intern("g", full);
  for (const auto& [name, value] : metrics) set.metric(names.intern(name, full)).add(value);
  set.group(group).n = 1;
  *formulas = Formulas(fma);
  return formulas->evaluate(&set, only(group), names).of(0, 1, 1);
}

// FLOP of one launch from metrics with one sample each.
std::string flop_of(const std::vector<std::pair<std::string, double>>& metrics, int fma = 2) {
  NamePool names;
  SampleSet set;
  bool full = false;
  const uint32_t group = names.intern("g", full);
  for (const auto& [name, value] : metrics) set.metric(names.intern(name, full)).add(value);
  set.group(group).n = 1;
  Formulas formulas(fma);
  const SignatureFlop flop = formulas.evaluate(&set, only(group), names);
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

TEST_CASE(
    "of a simulated GPU: one half counts half of two, what machine code adds counts nothing") {
  const auto counted = [](const std::string& name) {
    return std::pair{"simgpu__thread_inst_executed_" + name + ".sum", 3.0};
  };
  CHECK(flop_of({counted("hadd_one"), counted("hmul_one")}) == "6");
  CHECK(flop_of({counted("hfma_one")}) == "6");
  CHECK(flop_of({counted("hfma_one")}, 1) == "3");
  CHECK(flop_of({counted("div_f32"), counted("sqrt_f64"), counted("shared_add_f32")}) == "0");
  Formulas formulas(2);
  const MetricMeaning division = formulas.meaning(counted("div_f64").first);
  CHECK(division.role == MetricRole::kMachine);
  CHECK(machine_operations()[division.precision].name == "fp64 division");
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

TEST_CASE("FLOP by precision and integer operations, worked by hand") {
  Formulas formulas(2);
  // A Hopper kernel: 100 ffma, 8 packed hfma, wgmma in bf16 and fp8, mma in both fp16 kinds and
  // int8, dense and sparse.
  const std::vector<std::pair<std::string, double>> kernel = {
      {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 100},
      {"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 8},
      {kTensor + "op_hgmma_src_bf16_dst_fp32.sum", 4096},
      {kTensor + "op_hmma_src_bf16_dst_fp32.sum", 512},
      {kTensor + "src_fp8.sum", 8192},
      {kTensor + "op_hmma_src_fp16_dst_fp32.sum", 1024},
      {kTensor + "op_hmma_src_fp16_dst_fp16.sum", 256},
      {kTensor + "src_fp64.sum", 64},
      {kTensor + "op_imma_src_int8_sparsity_off.sum", 2048},
      {kTensor + "op_imma_src_int8_sparsity_on.sum", 4},
      {kTensor + "op_igmma_src_int8.sum", 16},
      {kTensor + "src_int4.sum", 32},
      {kTensor + "src_int1.sum", 128},
      {"sm__inst_executed_pipe_tensor_op_hmma.sum", 9}};
  const auto by_name = [&](const Flop& flop) {
    std::map<std::string, std::string> result;
    for (size_t i = 0; i < formulas.precisions().size(); ++i)
      if (flop.by_precision[i] > 0)
        result[formulas.precisions()[i]] = to_decimal(flop.by_precision[i]);
    for (size_t i = 0; i < kIntegerFormats.size(); ++i)
      if (flop.integer[i] > 0)
        result[std::string(kIntegerFormats[i])] = to_decimal(flop.integer[i]);
    return result;
  };
  const Flop two = work_of(kernel, 2, &formulas);
  CHECK(by_name(two) == std::map<std::string, std::string>{{"fp32", "200"},
                                                           {"fp16", "32"},
                                                           {"tensor_bf16", "4608"},
                                                           {"tensor_fp8", "8192"},
                                                           {"tensor_fp16", "1280"},
                                                           {"tensor_fp64", "64"},
                                                           {"tensor_int8", "2064"},
                                                           {"tensor_int8_sparse", "4"},
                                                           {"tensor_int4", "32"},
                                                           {"tensor_int1", "128"}});
  CHECK(to_decimal(two.total) == "14376");
  CHECK(to_decimal(two.matrix) == "14376");
  const Flop one = work_of(kernel, 1, &formulas);
  CHECK(to_decimal(one.total) == "7188");
  CHECK(by_name(one)["tensor_int8"] == "2064");  // --fma is for floating point
  CHECK(by_name(work_of({{kTensor + "op_utcqmma_src_fp8_dst_fp32_sparsity_off.sum", 10},
                         {kTensor + "op_utcqmma_src_fp8_dst_fp32_sparsity_on.sum", 6},
                         {kTensor + "src_fp4_dst_fp32.sum", 3}},
                        2, &formulas)) ==
        std::map<std::string, std::string>{
            {"tensor_fp8", "10"}, {"tensor_fp8_sparse", "6"}, {"tensor_fp4", "3"}});
}

TEST_CASE("a group is needed where screening says so, and only there") {
  bool full = false;
  NamePool names;
  const uint32_t sass = names.intern("sass", full), bf16 = names.intern("tensor_bf16", full);
  const uint32_t hmma = names.intern("sm__inst_executed_pipe_tensor_op_hmma.sum", full);
  const uint32_t half = names.intern("sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum", full);
  RequiredGroups required;
  required.add(sass, true, {});
  required.add(bf16, false, {{hmma, half}});
  Formulas formulas(2);
  const auto evaluate = [&](std::vector<std::pair<uint32_t, double>> screened, bool sampled) {
    SampleSet set;
    set.group(sass).n = 1;
    set.metric(names.intern("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", full)).add(3);
    for (const auto& [metric, value] : screened) set.metric(metric).add(value);
    if (sampled) set.group(bf16).n = 1;
    if (sampled) set.metric(names.intern(kTensor + "src_bf16_dst_fp32.sum", full)).add(4096);
    return formulas.evaluate(&set, required, names);
  };
  CHECK(evaluate({}, false).status == FlopStatus::kMeasured);
  CHECK(evaluate({}, false).unscreened);
  CHECK(evaluate({{hmma, 0}, {half, 0}}, false).status == FlopStatus::kMeasured);
  CHECK_FALSE(evaluate({{hmma, 0}, {half, 0}}, false).unscreened);
  CHECK(evaluate({{hmma, 7}, {half, 7}}, false).status == FlopStatus::kMeasured);
  const SignatureFlop missing = evaluate({{hmma, 8}, {half, 7}}, false);
  CHECK(missing.status == FlopStatus::kGroupNotSampled);
  CHECK(missing.missing_group == bf16);
  const SignatureFlop counted = evaluate({{hmma, 8}, {half, 7}}, true);
  CHECK(counted.status == FlopStatus::kMeasured);
  CHECK_FALSE(counted.unscreened);
  CHECK(to_decimal(counted.of(0, 1, 1).total) == "4102");
  CHECK_FALSE(evaluate({}, true).unscreened);
}

TEST_CASE("a kernel that needs a group that cannot be measured has no count") {
  bool full = false;
  NamePool names;
  const uint32_t sass = names.intern("sass", full), int8 = names.intern("tensor_int8", full);
  const uint32_t imma = names.intern("sm__inst_executed_pipe_tensor_op_imma.sum", full);
  RequiredGroups required;
  required.add(sass, true, {});
  required.add(int8, false, {{imma, NeededIf::kNothing}}, true);
  SampleSet set;
  set.group(sass).n = 1;
  set.metric(names.intern("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", full)).add(3);
  Formulas formulas(2);
  const SignatureFlop unknown = formulas.evaluate(&set, required, names);
  CHECK(unknown.status == FlopStatus::kGroupUnavailable);
  CHECK(unknown.missing_group == int8);
  SampleSet without = set;
  without.metric(imma).add(0);
  CHECK(formulas.evaluate(&without, required, names).status == FlopStatus::kMeasured);
  SampleSet with = set;
  with.metric(imma).add(5);
  CHECK(formulas.evaluate(&with, required, names).status == FlopStatus::kGroupUnavailable);
  // Another process of the job could measure it.
  with.group(int8).n = 1;
  with.metric(names.intern(kTensor + "src_int8.sum", full)).add(64);
  CHECK(formulas.evaluate(&with, required, names).status == FlopStatus::kMeasured);
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
  set.group(group).n = 1;
  Formulas formulas(2);
  CHECK(to_decimal(formulas.evaluate(&set, only(group), names).of(0, 1, 1).total) == "100");
  CHECK(formulas.precisions().size() == kMaxPrecisions);
}
