// Whole tiles as the cause of a difference: sizes and tiles by hand.
#include "operator_scene.h"
#include "report/operators/operator_facts.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// The cause of one forward operator that does so many multiply-adds, without tensor cores.
Cause cause_for(const std::string& op, const std::string& kernel, double multiply_adds,
                double additions = 0) {
  Scene s;
  const uint32_t path =
      s.path({"forward", "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))", op});
  s.launch(kMain, {s.at(s.kernel(kernel, multiply_adds, additions), path, 1)});
  const Report r = s.reduce();
  REQUIRE(r.operators.places.size() == 1);
  return {r.operators.places[0].cause, r.operators.places[0].evidence};
}

const std::string kConv = "aten::conv2d, sizes = [[2, 3, 8, 8], [4, 3, 3, 3], []]";
const std::string kMm = "aten::mm, sizes = [[100, 27], [27, 60]]";

}  // namespace

TEST_CASE("tile padding: products without tensor cores") {
  const Cause plain = cause_for(kMm, "volta_sgemm_128x64_nn", 128.0 * 64 * 27);
  CHECK(plain.cause == "tile padding");
  CHECK(plain.evidence.find("100 x 60 computed as 128 x 64") == 0);
  CHECK(cause_for(kMm, "ampere_sgemm_64x64_nt", 128.0 * 64 * 27).cause == "tile padding");
  // The depth goes in steps of 8.
  const Cause deep = cause_for(kMm, "cutlass_simt_sgemm_128x64_8x5_nn", 128.0 * 64 * 32);
  CHECK(deep.cause == "tile padding");
  CHECK(deep.evidence.find("100 x 60 x 27 computed as 128 x 64 x 32") == 0);
  // Without a tile in the name, or with one that gives another number, it is not taken for padding.
  CHECK(cause_for(kMm, "my_gemm", 128.0 * 64 * 27).cause == "unexplained");
  CHECK(cause_for(kMm, "volta_sgemm_128x128_nn", 128.0 * 64 * 27).cause == "unexplained");
  CHECK(cause_for(kMm, "volta_sgemm_128x64_nn", 2.0 * 100 * 60 * 27).cause == "unexplained");
}

TEST_CASE("tile padding: convolutions as implicit products") {
  // 2 x 8 x 8 positions, 4 filters, 3 x 3 x 3 inputs: 128 x 4 x 27.
  const Cause forward = cause_for(
      kConv, "sm80_xmma_fprop_implicit_gemm_f32f32_tilesize128x32x8_stage3", 128.0 * 32 * 32);
  CHECK(forward.cause == "tile padding");
  CHECK(forward.evidence.find("128 x 4 x 27 computed as 128 x 32 x 32") == 0);
  CHECK(
      cause_for(kConv, "cudnn_infer_volta_scudnn_128x64_relu_small_nn_v1", 128.0 * 64 * 27).cause ==
      "tile padding");
  CHECK(cause_for(kConv, "implicit_convolve_sgemm", 128.0 * 64 * 27).cause == "unexplained");

  const OperatorName grouped = *parse_operator_name(
      "aten::convolution_backward, sizes = [[2, 8, 4, 4], [2, 6, 8, 8], [8, 3, 3, 3]]");
  const u128 one = 2 * 8 * 16 * 27;  // stride 2, two groups
  const auto check = [&](Direction direction, uint64_t rows, uint64_t columns, uint64_t depth) {
    const auto gemm = gemm_of(grouped, one, direction);
    REQUIRE(gemm);
    CHECK(gemm->batch == 2);
    CHECK(gemm->rows == rows);
    CHECK(gemm->columns == columns);
    CHECK(gemm->depth == depth);
  };
  check(Direction::kInputGradient, 2 * 64, 3, 4 * 9);
  check(Direction::kWeightGradient, 4, 3 * 9, 2 * 16);
}

TEST_CASE("tile padding: gradients, each as its kernel's name says") {
  const auto cause = [](double by_input, double by_weight) {
    Scene s;
    const uint32_t back =
        s.path({kNode + "ConvolutionBackward0", "ConvolutionBackward0",
                "aten::convolution_backward, sizes = [[2, 4, 8, 8], [2, 3, 8, 8], [4, 3, 3, 3]]"});
    std::vector<TraceBuilder::Launch> launches = {
        s.at(s.kernel("cudnn_wgrad_implicit_gemm_64x32", by_weight), back, 1)};
    if (by_input > 0)
      launches.push_back(s.at(s.kernel("cudnn_dgrad_implicit_gemm_128x32", by_input), back, 1));
    s.launch(kMain, {s.at(s.kernel("f", 6912), s.path({"forward", kConv}), 1)});
    s.launch(kAutograd, launches);
    return type_of(s.reduce(), "aten::convolution_backward", "backward").cause;
  };
  // By input 128 x 3 x 36, by weights 4 x 27 x 128.
  CHECK(cause(128.0 * 32 * 36, 64.0 * 32 * 128) == "tile padding");
  CHECK(cause(0, 64.0 * 32 * 128) == "no input gradient, tile padding");
  CHECK(cause(0, 5.0 * 6912) == "no input gradient, unexplained");
  CHECK(cause(128.0 * 32 * 36, 5.0 * 6912) == "unexplained");
}

TEST_CASE("tile padding: the end of a product explains no ratio far from 1") {
  const double product = 100.0 * 27 * 60, results = 100.0 * 60;
  CHECK(cause_for(kMm, "gemm_relu_nn", 3 * product).cause == "unexplained");
  CHECK(cause_for(kMm, "scudnn_medium_relu_small", 0.5 * product).cause == "unexplained");
  CHECK(cause_for(kMm, "gemm_relu_nn", product, 3 * results).cause == "fused epilogue");
  CHECK(cause_for(kMm, "triton_fused_mm", 0.5 * product).cause == "unexplained");
}
