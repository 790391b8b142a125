// Fused attention whose sizes no range's name has: what the model needs of it is worked out here
// from lengths and widths, and what kernels execute by going through their blocks one by one.
#include <algorithm>
#include <cmath>

#include "catch.h"
#include "operator_scene.h"
#include "sections/parts/cells.h"

using namespace flopinj::test;

namespace {

// Sequences of a packed batch.
struct Packed {
  std::vector<int> lengths;
  bool causal = false;
  double heads = 8, key = 64, value = 64;

  // Pairs of a query and a key that it sees, in one head.
  double pairs() const {
    double sum = 0;
    for (const int length : lengths)
      for (int query = 0; query < length; ++query) sum += causal ? query + 1 : length;
    return sum;
  }
  // Pairs in blocks that hold any, of `rows` queries and `columns` keys.
  double executed(int rows, int columns) const {
    double sum = 0;
    for (const int length : lengths)
      for (int row = 0; row < length; row += rows)
        for (int column = 0; column < length; column += columns)
          if (!causal || column < std::min(length, row + rows)) sum += rows * columns;
    return sum;
  }
  // FLOP of two products for each pair.
  double forward(double pairs_of) const { return 2 * heads * pairs_of * (key + value); }
  // The scores and gradients by keys and queries, E wide; by scores and values, V wide; each so
  // often.
  double backward(double pairs_of, double scores = 1, double by_scores = 1) const {
    return 2 * heads * pairs_of * ((scores + 2) * key + (by_scores + 1) * value);
  }
  double model() const { return 3 * forward(pairs()); }
};

// A batch of 8,192 positions, in which kernels go through blocks of 128 queries and keys.
const Packed kBatch{{4096, 1024, 2048, 768, 256}, true};

std::string mark_of(const Report& report) { return marks_text(report.operators.model.marks()); }

double model_of(const Report& report) { return static_cast<double>(model_flop(report)); }

// A product of 4096 x 4096 matrices and its gradients, which have formulas, beside attention.
constexpr double kLinear = 4096.0 * 4096 * 4096;
struct Trained : Scene {
  Trained() : Scene(true) {
    const std::string mm = "aten::mm, sizes = [[4096, 4096], [4096, 4096]]";
    const uint32_t gemm = kernel("gemm", 0, 0, 2 * kLinear);
    const uint32_t gradient = path({kNode + "MmBackward0", "MmBackward0", mm});
    launch(kMain, {call(gemm, path({"forward", mm}), 1)});
    launch(kAutograd, {call(gemm, gradient, 1), call(gemm, gradient, 1)});
  }
  void attend(const std::vector<std::string>& names, const std::string& name, double tensor,
              uint32_t thread = kMain) {
    launch(thread, {call(kernel(name, 0, 0, tensor), path(names), 2)});
  }
};

struct Kernels {
  const char *forward, *backward;
  double scores = 1, by_scores = 1;  // how often backward computes them
};
constexpr Kernels kKernels[] = {
    {"void flash::flash_fwd_kernel<>",
     "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<>"},
    {"flash::enable_sm90<flash::FlashAttnFwdSm90<>>",
     "flash::enable_sm90<flash::FlashAttnBwdSm90<>>"},
    {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128",
     "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128"},
    {"fmha_cutlassF_bf16_aligned_64x128_rf_sm80", "fmha_cutlassB_bf16_aligned_128x128_k128_sm80"},
    {"triton_tem_fused_flex_attention_0", "triton_tem_fused_flex_attention_backward_2", 2, 2},
    {"_attn_fwd", "_attn_bwd", 2, 2},
    // Triton's of another algorithm.
    {"_attn_fwd", "_attn_bwd", 1, 1},
};

// Where attention's kernels run: outside of all operators, in one of a library, in functions of
// Python, and in PyTorch's own for packed sequences.
struct Where {
  std::vector<std::string> forward, backward;
};
const std::string kPackedSizes = "[[8192, 8, 64], [8192, 8, 64], [8192, 8, 64]";
const Where kWhere[] = {
    {{"forward", "Torch-Compiled Region: 1/0"},
     {kNode + "CompiledFunctionBackward", "CompiledFunctionBackward"}},
    {{"forward", "mylib::attention, sizes = [[1, 8, 8192, 64]]"},
     {kNode + "GeneratedBackwardFor_mylib_attention_defaultBackward",
      "GeneratedBackwardFor_mylib_attention_defaultBackward"}},
    {{"forward", "FusedAttnFunc, sizes = [[8192, 8, 64], [8192, 8, 64], [8192, 8, 64]]"},
     {kNode + "FusedAttnFuncBackward", "FusedAttnFuncBackward"}},
    {{"forward", "aten::_flash_attention_forward, sizes = " + kPackedSizes + ", [6], [6], [], []]"},
     {kNode + "FlashAttentionBackward0", "FlashAttentionBackward0",
      "aten::_flash_attention_backward, sizes = [[8192, 8, 64], [8192, 8, 64], [8192, 8, 64], "
      "[8192, 8, 64], [8192, 8, 64], [8, 8192], [6], [6], [], [], []]"}},
    {{"forward", "FlashAttnVarlenFunc, sizes = " + kPackedSizes + "]",
      "flash_attn::_flash_attn_varlen_forward, sizes = " + kPackedSizes + ", [6], [6], [], []]"},
     {kNode + "FlashAttnVarlenFuncBackward", "FlashAttnVarlenFuncBackward",
      "flash_attn::_flash_attn_varlen_backward, sizes = [[8192, 8, 64], [8192, 8, 64], [8192, 8, "
      "64], [8192, 8, 64], [8192, 8, 64], [8, 8192], [8192, 8, 64], [8192, 8, 64], [8192, 8, 64], "
      "[6], [6]]"}},
};

}  // namespace

TEST_CASE("attention: of packed sequences the model needs what its kernels execute, about") {
  const double pairs = kBatch.executed(128, 128);
  const double exact = 2 * 3 * kLinear + kBatch.model();
  for (const Where& where : kWhere)
    for (const Kernels& kernels : kKernels) {
      INFO(where.forward.back() << ", " << kernels.forward);
      const bool of_operator = where.forward.back().find("_flash_att") != std::string::npos;
      if (of_operator && kernels.scores > 1) continue;  // these operators have no such kernels
      Trained s;
      s.attend(where.forward, kernels.forward, kBatch.forward(pairs));
      s.attend(where.backward, kernels.backward,
               kBatch.backward(pairs, kernels.scores, kernels.by_scores), kAutograd);
      const Report r = s.reduce();
      CHECK(model_of(r) == Approx(2 * 3 * kLinear + 3 * kBatch.forward(pairs)).epsilon(1e-9));
      // Whole blocks, and no more.
      CHECK(model_of(r) >= exact);
      CHECK(model_of(r) <= exact * 1.03);
      CHECK(mark_of(r) == "~");
      CHECK(r.operators.model.coverage() == "all matrix FLOP covered");
    }
}

TEST_CASE("attention: without forward's kernels the usual algorithm of backward counts") {
  const double pairs = kBatch.pairs();
  const double share[] = {4.0 / 5, 4.0 / 5, 4.0 / 5, 4.0 / 5, 4.0 / 7, 4.0 / 7};
  for (size_t i = 0; i < std::size(share); ++i) {
    INFO(kKernels[i].backward);
    Trained s;
    const double executed = kBatch.backward(pairs, kKernels[i].scores, kKernels[i].by_scores);
    s.attend({kNode + "FusedAttnFuncBackward", "FusedAttnFuncBackward"}, kKernels[i].backward,
             executed, kAutograd);
    const Report r = s.reduce();
    CHECK(model_of(r) == Approx(2 * 3 * kLinear + share[i] * executed).epsilon(1e-9));
    CHECK(model_of(r) == Approx(2 * 3 * kLinear + 2 * kBatch.forward(pairs)).epsilon(1e-9));
  }
}

TEST_CASE("attention: backward in a kernel for keys and values, and one for queries") {
  const double pairs = kBatch.executed(64, 64);
  const Kernels apart[] = {{"_attn_bwd_dkdv", "_attn_bwd_dq"},
                           {"parallel_attn_bwd_kernel_dkv", "parallel_attn_bwd_kernel_dq"}};
  for (const auto& [keys, queries, scores, by_scores] : apart) {
    INFO(keys);
    Trained s;
    const std::vector<std::string> node{kNode + "AttentionBackward", "AttentionBackward"};
    const double one = kBatch.forward(pairs) / 2;  // keys and values are as wide
    s.attend(node, keys, 4 * one, kAutograd);
    s.attend(node, queries, 3 * one, kAutograd);
    CHECK(model_of(s.reduce()) == Approx(2 * 3 * kLinear + 4 * one).epsilon(1e-9));
  }
}

TEST_CASE("attention: keys wider than values, by their sizes or by what forward executed") {
  Packed batch = kBatch;
  batch.key = 192, batch.value = 128;
  const double pairs = batch.executed(128, 128);
  const std::string q = "[8192, 8, 192]", v = "[8192, 8, 128]";
  const Where ways[] = {
      {{"forward", "flash_attn::_flash_attn_varlen_forward, sizes = [" + q + ", " + q + ", " + v +
                       ", [6], [6], [], []]"},
       {kNode + "FlashAttnVarlenFuncBackward", "FlashAttnVarlenFuncBackward",
        "flash_attn::_flash_attn_varlen_backward, sizes = [" + v + ", " + q + ", " + q + ", " + v +
            ", " + v + ", [8, 8192]]"}},
      {{"forward", "FusedAttnFunc"}, {kNode + "FusedAttnFuncBackward", "FusedAttnFuncBackward"}}};
  for (const Where& where : ways) {
    INFO(where.forward.back());
    Trained s;
    s.attend(where.forward, "flash::FlashAttnFwdSm90<>", batch.forward(pairs));
    s.attend(where.backward, "flash::FlashAttnBwdSm90<>", batch.backward(pairs), kAutograd);
    CHECK(model_of(s.reduce()) == Approx(2 * 3 * kLinear + 3 * batch.forward(pairs)).epsilon(1e-9));
  }
}

TEST_CASE("attention: what backward computes again is no part of the model") {
  const double pairs = kBatch.pairs();
  for (const Kernels& kernels : kKernels) {
    INFO(kernels.forward);
    Trained s;
    const std::vector<std::string> node{kNode + "CompiledFunctionBackward",
                                        "CompiledFunctionBackward"};
    s.attend({"forward", "Torch-Compiled Region: 0/0"}, kernels.forward, kBatch.forward(pairs));
    s.attend(node, kernels.forward, kBatch.forward(pairs), kAutograd);
    s.attend(node, kernels.backward, kBatch.backward(pairs, kernels.scores, kernels.by_scores),
             kAutograd);
    const Report r = s.reduce();
    CHECK(model_of(r) == Approx(2 * 3 * kLinear + kBatch.model()).epsilon(1e-9));
  }
}

TEST_CASE("attention: names that say nothing of the direction") {
  const double pairs = kBatch.pairs();
  const std::vector<std::string> node{kNode + "FusedAttnFuncBackward", "FusedAttnFuncBackward"};
  const char* name = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16";
  const auto trained = [&](double in_backward) {
    Trained s;
    s.attend({"forward", "FusedAttnFunc"}, name, kBatch.forward(pairs));
    s.attend(node, name, in_backward, kAutograd);
    return s.reduce();
  };
  for (const double again : {1.0, 2.0}) {
    const Report r = trained(kBatch.backward(pairs, again, again));
    CHECK(model_of(r) == Approx(2 * 3 * kLinear + kBatch.model()).epsilon(1e-9));
    CHECK(mark_of(r) == "~");
  }
  // As much as forward's is forward's once more; of another amount nothing is known.
  const Report again = trained(kBatch.forward(pairs));
  CHECK(model_of(again) == Approx(2 * 3 * kLinear + kBatch.forward(pairs)).epsilon(1e-9));
  CHECK(mark_of(again) == "~");
  CHECK(has(trained(1.7 * kBatch.forward(pairs)).operators.model.marks(), Mark::kAtLeast));
}

TEST_CASE("attention: a name alone does not make attention of an operator that is something else") {
  const double tensor = kBatch.forward(kBatch.pairs());
  // With a formula its formula counts.
  {
    Trained s;
    s.attend({"forward", "aten::mm, sizes = [[1024, 1024], [1024, 1024]]"}, "flash_fwd_kernel",
             2.0 * 1024 * 1024 * 1024);
    const Report r = s.reduce();
    CHECK(model_of(r) == 2 * 3 * kLinear + 2.0 * 1024 * 1024 * 1024);
    CHECK(mark_of(r).empty());
  }
  // Without one nothing is known of it, as of names that are no attention's.
  const std::pair<const char*, const char*> others[] = {
      {"aten::mm", "flash_fwd_kernel"},
      {"aten::convolution", "_attn_fwd"},
      {"aten::softmax", "fmha_cutlassF_f16_aligned_64x64_rf_sm80"},
      {"mylib::attention", "void vllm::reshape_and_cache_flash_kernel<>"},
      {"mylib::attention", "_fwd_kernel"},
      {"mylib::attention", "triton_tem_fused_mm_0"},
  };
  for (const auto& [name, kernel] : others) {
    INFO(name << ", " << kernel);
    Trained s;
    s.attend({"forward", name}, kernel, tensor);
    const Report r = s.reduce();
    CHECK(model_of(r) == 2 * 3 * kLinear);
    CHECK(mark_of(r) == ">=");
  }
}

// Plain ranges, and operators without sizes.
TEST_CASE("attention: alone it is no model") {
  for (const char* name :
       {"attention", "FusedAttnFunc", "aten::_flash_attention_forward",
        "aten::scaled_dot_product_attention", "flash_attn::_flash_attn_varlen_forward"}) {
    INFO(name);
    Scene s(true);
    s.launch(kMain, {s.call(s.kernel("flash_fwd_kernel", 0, 0, kBatch.forward(kBatch.pairs())),
                            s.path({"forward", name}))});
    s.launch(kMain, {s.call(s.kernel("gemm", 0, 0, 2 * kLinear), s.path({"forward", "aten::mm"}))});
    CHECK_FALSE(s.reduce().operators.model.known());
  }
}

TEST_CASE("attention: other products beside it in an operator have no formula still") {
  Trained s;
  const double attention = kBatch.forward(kBatch.pairs());
  s.attend({"forward", "mylib::block, sizes = [[8192, 512]]"}, "flash_fwd_kernel", attention);
  s.attend({"forward", "mylib::block, sizes = [[8192, 512]]"}, "gemm_of_mine", attention);
  const Report r = s.reduce();
  CHECK(model_of(r) == 2 * 3 * kLinear + attention);
  CHECK(has(r.operators.model.marks(), Mark::kAtLeast));
}

TEST_CASE("attention: launches without a count make a lower bound") {
  Trained s;
  const double attention = kBatch.forward(kBatch.pairs());
  s.attend({"forward", "FusedAttnFunc"}, "flash_fwd_kernel", attention);
  s.launch(kMain, {s.call(s.unmeasured("flash_fwd_splitkv_kernel"),
                          s.path({"forward", "FusedAttnFunc"}), 3)});
  const Report r = s.reduce();
  CHECK(model_of(r) == 2 * 3 * kLinear + attention);
  CHECK(has(r.operators.model.marks(), Mark::kAtLeast));
}

TEST_CASE("attention: a small part of the model makes no mark") {
  Trained s;
  const Packed small{{64}, false, 1};
  s.attend({"forward", "FusedAttnFunc"}, "flash_fwd_kernel", small.forward(small.pairs()));
  CHECK(mark_of(s.reduce()).empty());
}

TEST_CASE("attention: its places say why they count as executed, and are none without a formula") {
  Trained s;
  s.attend({"forward", "Torch-Compiled Region: 1/0"}, "triton_tem_fused_flex_attention_0", 1e9);
  s.attend({kNode + "FusedAttnFuncBackward", "FusedAttnFuncBackward"},
           "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16", 2e9, kAutograd);
  const Report r = s.reduce();
  const OperatorReport& outside = type_of(r, "fused attention", "forward");
  CHECK(outside.cause == "fused attention");
  CHECK(outside.evidence.find("triton_tem_fused_flex_attention_0") != std::string::npos);
  CHECK(whole(outside.model.flop()) == 1'000'000'000);
  const OperatorReport& node = type_of(r, "FusedAttnFuncBackward", "backward");
  CHECK(node.cause == "fused attention");
  CHECK(node.evidence.starts_with("0.800 of its products"));
  CHECK(static_cast<double>(whole(node.model.flop())) == Approx(1.6e9));
  for (const OperatorReport& o : r.operators.types) CHECK(o.cause != "no formula");
}

TEST_CASE("attention: backward takes 2.5 times forward, whatever the lengths") {
  const double pairs = kBatch.pairs();
  for (const size_t at : {size_t{2}, size_t{3}, size_t{4}}) {
    INFO(kWhere[at].forward.back());
    Trained s;
    s.attend(kWhere[at].forward, "flash_fwd_kernel", kBatch.forward(pairs));
    s.attend(kWhere[at].backward, "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
             kBatch.backward(pairs), kAutograd);
    const Report r = s.reduce();
    const std::string name = kWhere[at].forward[1].substr(0, kWhere[at].forward[1].find(','));
    const ForwardBackward* row = nullptr;
    for (const auto& one : r.operators.by_forward)
      if (name.ends_with(one.name) || one.name == "flash_attn::_flash_attn_varlen_forward")
        row = &one;
    REQUIRE(row != nullptr);
    REQUIRE(row->ratio);
    CHECK(*row->ratio == Approx(2.5));
    REQUIRE(row->expected);
    CHECK(row->expected->certain());
    CHECK(row->expected->least == Approx(2.5));
    CHECK(row->expected->most == Approx(2.5));
  }
  // Of kernels that may be of another algorithm nothing is expected.
  Trained s;
  s.attend(kWhere[1].forward, "_attn_fwd", kBatch.forward(pairs));
  s.attend(kWhere[1].backward, "_attn_bwd", kBatch.backward(pairs), kAutograd);
  const Report r = s.reduce();
  for (const auto& one : r.operators.by_forward)
    if (one.name == "mylib::attention") CHECK_FALSE(one.expected);
}

TEST_CASE("attention: calls whose gradient never ran are expected to have none") {
  const double pairs = kBatch.pairs();
  Trained s;
  const Where& where = kWhere[3];
  s.attend(where.forward, "flash_fwd_kernel", kBatch.forward(pairs));
  s.attend(where.backward, "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", kBatch.backward(pairs),
           kAutograd);
  // A teacher's call.
  s.launch(kMain, {s.call(s.kernel("flash_fwd_kernel", 0, 0, kBatch.forward(pairs)),
                          s.path(where.forward), 7)});
  const Report r = s.reduce();
  INFO(r.operators.products_missing);
  const ForwardBackward& row = by_forward(r, "aten::_flash_attention_forward");
  REQUIRE(row.expected);
  CHECK(row.expected->certain());
  CHECK(row.expected->most == Approx(1.25));
}
