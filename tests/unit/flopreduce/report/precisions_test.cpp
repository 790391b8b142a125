// MFU where no counter says in which precision products ran: by the names of kernels and the types
// of operands. What is expected is worked out from data sheets' peaks and sizes of products.
#include "peaks/precisions.h"

#include "anonymous/names.h"
#include "catch.h"
#include "gates/figures.h"
#include "gates/gate.h"
#include "reduce_bytes.h"
#include "sections/parts/cells.h"
#include "sections/sections.h"
#include "support/data.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// What names say they say without secrets, too.
std::string said_by(std::string_view kernel) {
  const auto text_of = [](const KernelPrecisions& its) {
    return its.product ? its.precisions.text() : "none";
  };
  const std::string said = text_of(precisions_of_kernel(kernel));
  const std::string anonymous = AnonymousNames(KeyedHash({1, 2})).name(kernel);
  INFO(anonymous);
  CHECK(text_of(precisions_of_kernel(anonymous)) == said);
  return said;
}

// NVIDIA's data sheets, dense, FLOP/s.
constexpr double kFp32Peak = 19.5e12, kTf32Peak = 156e12, kBf16Peak = 312e12;  // A100
constexpr double kFp32OfV100 = 15.7e12;
constexpr const char *kA100 = "NVIDIA A100-SXM4-80GB", *kV100 = "Tesla V100-SXM2-16GB";

constexpr double kSide = 4096, kWallS = 0.1;
constexpr double kProduct = 2 * kSide * kSide * kSide;  // FLOP of one
const std::string kSizes = ", sizes = [[4096, 4096], [4096, 4096]]";
const std::string kAsMany = ", sizes = [[2048, 8192], [8192, 4096]]";  // the same FLOP
const char *const kSgemm = "ampere_sgemm_128x64_nn",
                  *const kTf32Gemm = "cutlass_80_tensorop_s1688gemm_128x128_32x3_tn_align4",
                  *const kMystery = "tuned_product",
                  *const kAdds =
                      "void at::native::vectorized_elementwise_kernel<4, "
                      "at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int)";

// One launch of each kernel, in a range of that name, without any counter.
struct Ran {
  std::string kernel, range;
};
// `steps`: each launch is a training step of its own, of which the run is made up.
Report of(const std::vector<Ran>& launches, UtilizationOptions options = {},
          const std::string& device = kA100, bool steps = false) {
  TraceBuilder t;
  t.header(1, false, 1, 101, 3);
  t.device(1, device == kV100 ? "GV100" : "GA100", device, device == kV100 ? 80 : 108);
  t.thread(1, "main");
  t.stream();
  t.path(1, 0, "forward");
  std::vector<TraceBuilder::Launch> list;
  for (uint32_t i = 0; i < launches.size(); ++i) {
    t.kernel(i + 1, launches[i].kernel, 11 + i);
    t.path(i + 2, 1, launches[i].range);
    list.push_back(
        {.signature = i + 1, .duration_ns = 1'000'000, .path = i + 2, .step = steps ? i + 1 : 0});
  }
  t.launches(list);
  if (steps) {
    const auto each_ns = static_cast<uint64_t>(kWallS * 1e9) / launches.size();
    std::vector<TraceBuilder::Step> times;
    for (uint32_t i = 0; i < launches.size(); ++i) times.push_back({i + 1, i * each_ns, each_ns});
    t.steps(times, 1);
  }
  flopinj::trace::TracePacket p;
  p.mutable_self_overhead()->set_wall_ns(static_cast<uint64_t>(kWallS * 1e9));
  t.add(p);
  t.end();
  ReduceOptions reduce;
  reduce.utilization = std::move(options);
  return reduce_bytes({t.bytes()}, reduce);
}
Figure mfu_of(const Report& report) {
  REQUIRE(report.utilization.mfu() != nullptr);
  return report.utilization.mfu()->wall;
}
double share_at(double peak, double products = 1) { return products * kProduct / (peak * kWallS); }

void check_exact(const Report& report, double share) {
  const Figure mfu = mfu_of(report);
  REQUIRE(mfu.known());
  CHECK(mfu.marks() == Mark::kNone);
  CHECK(*mfu.number() == Approx(share));
  CHECK_FALSE(mfu.most());
}
void check_range(const Report& report, double least, double most) {
  const Figure mfu = mfu_of(report);
  REQUIRE(mfu.known());
  CHECK(mfu.marks() == Mark::kAtLeast);
  CHECK(*mfu.number() == Approx(least));
  REQUIRE(mfu.most());
  CHECK(*mfu.most() == Approx(most));
}
void check_at_least(const Report& report, double share) {
  const Figure mfu = mfu_of(report);
  REQUIRE(mfu.known());
  CHECK(mfu.marks() == Mark::kAtLeast);
  CHECK(*mfu.number() == Approx(share));
  CHECK_FALSE(mfu.most());
}

}  // namespace

TEST_CASE("precisions: the table is read, and a line that is none is found") {
  CHECK(wrong_in_precisions(data::kPrecisions).empty());
  CHECK(wrong_in_precisions("product\tsgemm\tfp32\n").empty());
  for (const char* bad : {"product\tsgemm\n", "kernel\tsgemm\tfp32\n", "product\tSgemm\tfp32\n",
                          "product\tsgemm\tfp31\n", "product\t\tfp32\n"})
    CHECK(wrong_in_precisions("# a comment\n" + std::string(bad)) == "line 2");
}

// Kernels of profiles of PyTorch, and the types of the operators that launched them there.
TEST_CASE("precisions: kernels of libraries say in which they multiply") {
  // Of float.
  CHECK(said_by("ampere_sgemm_32x32_sliced1x4_tn") == "fp32");
  CHECK(said_by("volta_sgemm_64x64_nt") == "fp32");
  CHECK(said_by("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass_80_"
                "simt_sgemm_128x32_8x5_nn_align1::Params)") == "fp32");
  CHECK(said_by("cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1") == "fp32");
  CHECK(said_by("ampere_gcgemm_64x64_nt") == "fp32");
  CHECK(said_by("void gemmk1_kernel<float, 256, 5, false, false, false, false, "
                "cublasGemvTensorStridedBatched<float const> >(int)") == "fp32");
  CHECK(said_by("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x128_32x3_nt_align1>("
                "cutlass_80_tensorop_s1688gemm_256x128_32x3_nt_align1::Params)") == "tensor_tf32");
  CHECK(said_by("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_"
                "tilesize128x128x16_stage4_execute_kernel_cudnn") == "tensor_tf32");
  // Of bfloat16 and half.
  CHECK(said_by("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_"
                "tn_align8>(int)") == "tensor_bf16");
  CHECK(said_by("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_"
                "align8>(int)") == "tensor_bf16");
  CHECK(said_by("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_"
                "execute_segment_k_off_kernel__5x_cublas") == "tensor_bf16");
  CHECK(said_by("nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT") == "tensor_bf16");
  CHECK(said_by("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, "
                "128, 128, 4, false, false, cutlass::bfloat16_t> >(int)") == "tensor_bf16");
  CHECK(said_by("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_nn") == "tensor_fp16");
  CHECK(said_by("turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_tn") == "tensor_fp16");
  CHECK(said_by("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn") == "tensor_fp16");
  CHECK(said_by("ampere_h16816gemm_256x128_ldg8_stages_32x3_tn") == "tensor_fp16");
  CHECK(said_by("maxwell_fp16_sgemm_fp16_128x64_nn") == "fp32");  // computes in float
  // Of 8 bits and fewer.
  CHECK(said_by("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128") ==
        "tensor_fp8");
  CHECK(said_by("nvjet_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT") == "tensor_fp8");
  CHECK(said_by("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16") == "tensor_fp8");
  CHECK(said_by("bmm_E4m3_E2m1E2m1_Fp32_t128x16x256u2_s3") == "tensor_fp4");
  // No products; and names that say nothing.
  CHECK(said_by(kAdds) == "none");
  CHECK(said_by("void cublasLt::splitKreduce_kernel<32, 16, int, float>(int)") == "none");
  CHECK(said_by("void fft2d_r2c_32x32<float, false, 5u, true>(float2*, float const*)") == "none");
  CHECK(said_by("triton_tem_fused_mm_3").empty());
  CHECK(said_by("void at::native::int4_mm_kernel<float>(float*)").empty());
  // Mangled as well.
  CHECK(said_by("_ZN7cutlass6KernelI50cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align4EEvv") ==
        "tensor_tf32");
}

TEST_CASE("precisions: types leave open what they leave open") {
  CHECK(precisions_of_types("Float, Float") == precisions_of_types("c10::Float, -, float"));
  CHECK(precisions_of_types("Float, Float").text() == "fp32 or tensor_tf32");
  CHECK(precisions_of_types("Double, Double").text() == "fp64 or tensor_fp64");
  CHECK(precisions_of_types("Float8_e4m3fn, Float8_e4m3fn").text() == "tensor_fp8");
  // Indices and masks are no operands; bytes may be quantized weights.
  CHECK(precisions_of_types("Float, Long, Bool") == precisions_of_types("Float"));
  CHECK(precisions_of_types("Int, Long, Bool").empty());
  CHECK(precisions_of_types("Float, Char").empty());
  CHECK(precisions_of_types("Float, Strange").empty());
  CHECK(precisions_of_types("").empty());
}

TEST_CASE("precisions: MFU without counters is exact where names leave one precision") {
  check_exact(of({{kSgemm, "aten::mm" + kSizes}}), share_at(kFp32Peak));
  check_exact(of({{kTf32Gemm, "aten::mm" + kSizes}}), share_at(kTf32Peak));
  check_exact(of({{kTf32Gemm, "aten::mm" + kSizes}, {kSgemm, "aten::mm" + kAsMany}}),
              share_at(kTf32Peak) + share_at(kFp32Peak));
  // One range that ran in two of them says nothing of each.
  check_range(of({{kTf32Gemm, "aten::mm" + kSizes}, {kSgemm, "aten::mm" + kSizes}}),
              share_at(kTf32Peak), share_at(kFp32Peak));
  // What multiplies nothing has no formula and needs none.
  check_exact(of({{kTf32Gemm, "aten::mm" + kSizes}, {kAdds, "mine::own, sizes = [[64], []]"}}),
              share_at(kTf32Peak));
}

TEST_CASE("precisions: MFU without counters is a range where types and names leave several") {
  const std::string types = kSizes + ", types = [Float, Float]";
  const Report report = of({{kMystery, "aten::mm" + types}});
  check_range(report, share_at(kTf32Peak), share_at(kFp32Peak));
  CHECK(share_text(mfu_of(report)) == "0.88-7.0 %");
  const auto figures = json_of(report)["figures"];
  CHECK(figures["mfu"].is_null());
  CHECK(figures["mfu_at_least"].get<double>() == Approx(share_at(kTf32Peak)));
  CHECK(figures["mfu_at_most"].get<double>() == Approx(share_at(kFp32Peak)));
  bool shown = false;
  for (const auto& figure : screen_figures(report))
    if (std::string_view(figure.name) == "MFU") {
      shown = true;
      CHECK(figure.value == "0.88-7.0 %");
      CHECK(figure.note.find("fp32 or tensor_tf32") != std::string::npos);
    }
  CHECK(shown);

  // A part is known: only the rest is open.
  check_range(of({{kMystery, "aten::mm" + types}, {kSgemm, "aten::mm" + kSizes}}),
              share_at(kTf32Peak) + share_at(kFp32Peak), 2 * share_at(kFp32Peak));
  // A name goes before types, and what a GPU does not have is not open.
  check_exact(of({{kTf32Gemm, "aten::mm" + types}}), share_at(kTf32Peak));
  check_exact(of({{kMystery, "aten::mm" + types}}, {}, kV100), share_at(kFp32OfV100));
  // Operators of libraries may cast their operands.
  check_at_least(of({{kMystery, "mine::mm" + types}, {kSgemm, "aten::mm" + kSizes}}),
                 share_at(kFp32Peak) + share_at(kBf16Peak));
}

TEST_CASE("precisions: MFU of steps is as much a range as that of the run, in every form") {
  const std::string types = kSizes + ", types = [Float, Float]";
  const Report report =
      of({{kMystery, "aten::mm" + types}, {kSgemm, "aten::mm" + kSizes}}, {}, kA100, true);
  check_range(report, share_at(kTf32Peak) + share_at(kFp32Peak), 2 * share_at(kFp32Peak));
  const Figure steps = report.steps.mfu, run = mfu_of(report);
  REQUIRE(steps.known());
  REQUIRE(steps.most());
  CHECK(steps.marks() == Mark::kAtLeast);
  CHECK(*steps.number() == Approx(*run.number()));
  CHECK(*steps.most() == Approx(*run.most()));
  const auto summary = json_of(report)["step_summary"][0];
  CHECK(summary["mfu_at_least"].get<double>() == Approx(*run.number()));
  CHECK(summary["mfu_at_most"].get<double>() == Approx(*run.most()));
  CHECK(text_of(report).find("MFU of these steps  " + share_text(run)) != std::string::npos);
  // Forms with one value in a cell.
  for (const char* key : {"figures", "step_summary"}) {
    std::ostringstream csv;
    write_csv(csv, report_table(report, key));
    std::istringstream lines(csv.str());
    std::string heads, cells;
    std::getline(lines, heads);
    std::getline(lines, cells);
    const auto cell = [&](const std::string& name) {
      std::istringstream of_heads(heads), of_cells(cells);
      for (std::string head, value;
           std::getline(of_heads, head, ',') && std::getline(of_cells, value, ',');)
        if (head == name) return value;
      return std::string("no such column");
    };
    INFO(key);
    CHECK(std::stod(cell("mfu")) == Approx(*run.number()));
    CHECK(cell("mfu_mark") == ">=");
    CHECK(std::stod(cell("mfu_at_most")) == Approx(*run.most()));
  }
  // Of launches that nothing is known of, the upper end is not.
  const Figure open =
      of({{kMystery, "aten::mm" + kSizes}, {kSgemm, "aten::mm" + kSizes}}, {}, kA100, true)
          .steps.mfu;
  CHECK(open.marks() == Mark::kAtLeast);
  CHECK_FALSE(open.most());
}

TEST_CASE("precisions: where nothing says it, and where work has no formula, MFU is at least") {
  check_at_least(of({{kMystery, "aten::mm" + kSizes}}), share_at(kBf16Peak));
  check_at_least(of({{kTf32Gemm, "aten::mm" + kSizes}, {kMystery, "aten::mm" + kAsMany}}),
                 share_at(kTf32Peak) + share_at(kBf16Peak));
  check_at_least(of({{kTf32Gemm, "aten::mm" + kSizes}, {kMystery, "mine::own"}}),
                 share_at(kTf32Peak));
}

TEST_CASE("precisions: FLOP that are given are at the peaks of the kernels that ran") {
  UtilizationOptions options;
  options.formula_flop = kProduct;
  check_exact(of({{kTf32Gemm, "a"}, {kAdds, "b"}}, options), share_at(kTf32Peak));
  check_range(of({{kTf32Gemm, "a"}, {kSgemm, "b"}}, options), share_at(kTf32Peak),
              share_at(kFp32Peak));
  // In 1 ms the unknown kernel cannot have done more than the fastest peak allows.
  const double unknown = kBf16Peak * 1e-3;
  REQUIRE(unknown > kProduct);
  check_at_least(of({{kTf32Gemm, "a"}, {kMystery, "b"}}, options), share_at(kBf16Peak));
  // It may have done without some of the formula's FLOP, so that is not sure.
  options.formula_flop = 10 * kProduct;
  const Figure most = mfu_of(of({{kTf32Gemm, "a"}, {kMystery, "b"}}, options));
  CHECK(most.marks() == (Mark::kAtLeast | Mark::kEstimate));
  CHECK(*most.number() ==
        Approx(((10 * kProduct - unknown) / kTf32Peak + unknown / kBf16Peak) / kWallS));
}

TEST_CASE("precisions: a gate decides what both ends of a range decide") {
  const Report report =
      of({{kMystery, "aten::mm" + kSizes + ", types = [Float, Float]"}});  // 0.88 to 7.0 %
  const std::vector<Table> tables = gate_tables(report);
  const auto verdict = [&](const std::string& text) {
    Gate gate;
    std::string error;
    REQUIRE(Gate::parse(text, gate, error));
    return gate.evaluate([&](const FigurePath& path) { return find_figure(tables, path); });
  };
  CHECK(verdict("mfu < 0.8%").verdict == Verdict::kPassed);
  CHECK(verdict("mfu < 8%").verdict == Verdict::kFailed);
  CHECK(verdict("mfu > 8%").verdict == Verdict::kPassed);
  CHECK(verdict("mfu < 2%").verdict == Verdict::kNotKnown);
}
