// Kernels that mix precisions, against peaks: the time of each at its own peak, one after the
// other. Work is chosen so that each part takes a round time at the published peaks of an A100 SXM4
// 80GB: fp32 19.5, fp16 78, tensor fp16 312 and with sparsity 624 TFLOP/s, int8 624 and 1248 TOP/s,
// 2039 GB/s.
#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

const std::string kTensor = "sm__ops_path_tensor_";
// What takes a microsecond. One addition is one operation, one packed half multiply-add four.
constexpr double kFadd = 19.5e6, kHfma = 78e6 / 4, kDense = 312e6, kSparse = 624e6;
constexpr double kInt8 = 624e6, kInt8Sparse = 1248e6, kBytes = 2.039e6;
constexpr double kMicrosecond = 1000;

// One launch of each kernel that is added.
class Run {
 public:
  explicit Run(const std::string& device = "NVIDIA A100-SXM4-80GB",
               uint32_t multiprocessors = 108) {
    trace_.header(1);
    trace_.device(1, "GA100", device, multiprocessors);
    trace_.thread(1, "main");
    trace_.stream();
    trace_.group(1, "sass", sass_metrics());
    trace_.group(2, "bytes", {"dram__bytes_read.sum"});
    trace_.group(3, "tensor",
                 {kTensor + "src_fp16_dst_fp32_sparsity_off.sum",
                  kTensor + "src_fp16_dst_fp32_sparsity_on.sum", kTensor + "src_fp8_dst_fp32.sum",
                  kTensor + "src_int8_sparsity_off.sum", kTensor + "src_int8_sparsity_on.sum",
                  kTensor + "src_int4.sum"},
                 false);
  }
  struct Work {
    double fadd = 0, hfma = 0, dense = 0, sparse = 0, fp8 = 0, int8 = 0, int8_sparse = 0, int4 = 0;
    double bytes = 0;
  };
  void kernel(const std::string& name, const Work& w, double microseconds, bool windowed = false) {
    const uint32_t id = ++kernels_;
    trace_.kernel(id, name, 100 + id);
    trace_.samples(1, id, {sass(w.fadd, 0, 0, 0, w.hfma)});
    trace_.samples(2, id, {{w.bytes}});
    trace_.samples(3, id, {{w.dense, w.sparse, w.fp8, w.int8, w.int8_sparse, w.int4}});
    trace_.launches({{.signature = id,
                      .duration_ns = static_cast<int64_t>(microseconds * kMicrosecond),
                      .windowed = windowed}});
  }
  Report report(const std::vector<std::string>& peaks = {}, int fma = 2) {
    TraceBuilder whole = trace_;
    whole.end();
    ReduceOptions options;
    options.fma = fma;
    for (const auto& peak : peaks) options.utilization.peaks.push_back(parse_peak(peak).value);
    return reduce_bytes({whole.bytes()}, std::move(options));
  }

 private:
  TraceBuilder trace_;
  uint32_t kernels_ = 0;
};

nlohmann::json kernel(const nlohmann::json& report, const std::string& name) {
  for (const auto& k : report["roofline"])
    if (k["kernel"] == name) return k;
  FAIL("no kernel " << name);
  return {};
}

// What ran, and has no peak.
nlohmann::json without_peak(const nlohmann::json& report) {
  auto formats = nlohmann::json::array();
  for (const auto& peak : report["peaks"])
    if (peak["executed"] == true && peak["flop_per_s"].is_null() && peak["byte_per_s"].is_null() &&
        peak["op_per_s"].is_null())
      formats.push_back(peak["roof"]);
  return formats;
}

void check(const nlohmann::json& k, double of_peak, double of_roof, const std::string& nearer) {
  INFO(k.dump());
  CHECK(k["utilization"].get<double>() == Approx(of_peak));
  CHECK(k["roof_share"].get<double>() == Approx(of_roof));
  CHECK(k["nearer_roof"] == nearer);
  CHECK(k["bound_by"] == (of_roof >= 0.6 ? nearer : "latency"));
}

}  // namespace

TEST_CASE("a kernel's least time is the sum over its precisions, each at its own peak") {
  Run run;
  // 3 + 1 + 2 + 1 = 7 us of arithmetic, beside 2 us of memory, in 14 us.
  Run::Work work{.fadd = kFadd, .hfma = 2 * kHfma, .dense = 3 * kDense, .sparse = kSparse};
  work.bytes = 2 * kBytes;
  run.kernel("mixed", work, 14);
  work.bytes = 10 * kBytes;  // memory takes longer
  run.kernel("slow memory", work, 20);
  const auto j = json_of(run.report());
  check(kernel(j, "mixed"), 7.0 / 14, 7.0 / 14, "tensor_fp16");
  check(kernel(j, "slow memory"), 7.0 / 20, 10.0 / 20, "memory");
  // Launch by launch: 7 of the first, 10 of the second.
  CHECK(j["figures"]["roof_share"].get<double>() == Approx(17.0 / 34));
  CHECK(j["figures"]["hfu_kernel_time"].get<double>() == Approx(14.0 / 34));
  CHECK(without_peak(j).empty());
}

TEST_CASE("a kernel is bound by the nearer roof only where it comes near to it") {
  Run run;
  // 1 us of arithmetic beside 3 us of memory.
  const Run::Work copies{.fadd = kFadd, .bytes = 3 * kBytes};
  const Run::Work multiplies{.fadd = 3 * kFadd, .bytes = kBytes};
  run.kernel("near memory", copies, 4.9);
  run.kernel("far", copies, 5.1);
  run.kernel("near arithmetic", multiplies, 4.9);
  run.kernel("tiny", {.fadd = kFadd / 100, .bytes = kBytes / 1000}, 2);
  run.kernel("slowed, near all the same", copies, 4.9, true);
  run.kernel("slowed", copies, 100, true);
  const Report report = run.report();
  const auto j = json_of(report);
  check(kernel(j, "near memory"), 1 / 4.9, 3 / 4.9, "memory");
  check(kernel(j, "far"), 1 / 5.1, 3 / 5.1, "memory");
  CHECK(kernel(j, "far")["bound_by"] == "latency");
  check(kernel(j, "near arithmetic"), 3 / 4.9, 3 / 4.9, "fp32");
  check(kernel(j, "tiny"), 0.01 / 2, 0.01 / 2, "fp32");
  CHECK(kernel(j, "slowed, near all the same")["bound_by"] == "memory");
  CHECK(kernel(j, "slowed")["nearer_roof"] == "memory");
  CHECK(kernel(j, "slowed")["bound_by"].is_null());  // without the counters it may be near
  // ">=" is for missing launches only: of times that are too long the share is ">".
  const std::string text = text_of(report);
  CHECK(text.find(">=") == std::string::npos);
  CHECK(text.find("> 61.2 %") != std::string::npos);
}

TEST_CASE("sparse work has the sparse peak: as much of it in half the time") {
  Run run;
  run.kernel("dense", {.dense = 624e6, .bytes = 1}, 4);
  run.kernel("sparse", {.sparse = 624e6, .bytes = 1}, 4);
  const auto j = json_of(run.report());
  check(kernel(j, "dense"), 2.0 / 4, 2.0 / 4, "tensor_fp16");
  check(kernel(j, "sparse"), 1.0 / 4, 1.0 / 4, "tensor_fp16_sparse");
  for (const char* precision : {"tensor_fp16", "tensor_fp16_sparse"})
    CHECK(row_of(j, "precisions", "precision", precision)["flop"] == 624000000);
}

TEST_CASE("one multiply-add as one operation: the same shares, since peaks are halved") {
  Run run;
  run.kernel("products",
             {.hfma = 2 * kHfma, .dense = 3 * kDense, .sparse = kSparse, .bytes = kBytes}, 12);
  for (const int fma : {2, 1})
    check(kernel(json_of(run.report({}, fma)), "products"), 6.0 / 12, 6.0 / 12, "tensor_fp16");
}

TEST_CASE("one multiply-add as one operation: the same MFU by 6ND, which are three multiply-adds") {
  TraceBuilder t;
  t.header(1);
  t.device(1, "GA100", "NVIDIA A100-SXM4-80GB", 108);
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "products", 11);
  t.samples(1, 1, {sass(0, 0, kFadd / 2)});  // 1 us at peak
  t.path(1, 0, "step");
  t.launches({{.signature = 1, .duration_ns = 2000, .path = 1, .step = 1}});
  t.steps({{1, 1000, 2000}}, 1);
  t.overhead(0, 10'000);
  t.end();
  for (const int fma : {2, 1}) {
    ReduceOptions options;
    options.fma = fma;
    options.utilization.parameters = 19.5e3;
    options.utilization.tokens_per_step = 100;
    const auto j = json_of(reduce_bytes({t.bytes()}, std::move(options)));
    INFO("fma " << fma);
    CHECK(j["figures"]["hfu"].get<double>() == Approx(0.1));  // 1 us of 10
    // 6 x 19.5e3 x 100 operations at 19.5e12 a second take 0.6 us.
    CHECK(j["figures"]["mfu"].get<double>() == Approx(0.06));
    CHECK(j["step_summary"][0]["mfu"].get<double>() == Approx(0.3));
    CHECK(j["figures"]["flop_per_token"].get<double>() == fma * kFadd / 2 / 100);
  }
}

TEST_CASE("the slowest precision binds, not the one with most FLOP") {
  Run run;
  run.kernel("additions", {.fadd = 4 * kFadd, .dense = 3 * kDense, .bytes = kBytes}, 14);
  check(kernel(json_of(run.report()), "additions"), 7.0 / 14, 7.0 / 14, "fp32");
}

TEST_CASE("a precision without a peak makes shares unknown, is named, and takes the user's peak") {
  Run run;
  run.kernel("fp8", {.fadd = kFadd, .fp8 = 8e6, .bytes = kBytes}, 10);  // no fp8 on an A100
  run.kernel("plain", {.fadd = kFadd, .bytes = 2 * kBytes}, 10);
  const Report report = run.report();
  const auto j = json_of(report);
  const auto fp8 = kernel(j, "fp8");
  CHECK(fp8["utilization"].is_null());
  CHECK(fp8["utilization_why"] == "no peak known");
  CHECK(fp8["roof_share"].is_null());
  CHECK(fp8["bound_by"].is_null());
  check(kernel(j, "plain"), 1.0 / 10, 2.0 / 10, "memory");
  CHECK(j["figures"]["hfu_kernel_time"].is_null());
  CHECK(without_peak(j) == nlohmann::json::array({"tensor_fp8"}));
  CHECK(text_of(report).find("no peak known of tensor_fp8: what ran in it has no share of peak "
                             "(--peak tensor_fp8=VALUE)") != std::string::npos);
  const auto given = json_of(run.report({"fp8=2T"}));  // 8 MFLOP take 4 us
  check(kernel(given, "fp8"), 5.0 / 10, 5.0 / 10, "tensor_fp8");
  CHECK(given["figures"]["hfu_kernel_time"].get<double>() == Approx(6.0 / 20));
}

TEST_CASE("integer tensor work is in the roof, though it is no FLOP") {
  Run run;
  run.kernel("quantized",
             {.fadd = kFadd, .int8 = 3 * kInt8, .int8_sparse = kInt8Sparse, .bytes = 2 * kBytes},
             10);
  run.kernel("int4", {.fadd = kFadd, .int4 = 2e6, .bytes = kBytes}, 10);  // none in the table
  const auto j = json_of(run.report());
  check(kernel(j, "quantized"), 1.0 / 10, 5.0 / 10, "tensor_int8");
  const auto int4 = kernel(j, "int4");
  CHECK(int4["utilization"].get<double>() == Approx(1.0 / 10));  // of FLOP alone
  CHECK(int4["roof_share"].is_null());
  CHECK(int4["bound_by"].is_null());
  CHECK(row_of(j, "integer_operations", "source", "tensor_int8")["op"] == 1872000000);
  CHECK(row_of(j, "integer_operations", "source", "tensor_int8_sparse")["op"] == 1248000000);
  CHECK(without_peak(j) == nlohmann::json::array({"tensor_int4"}));
  // FLOP's convention does not change what an integer operation is.
  check(kernel(json_of(run.report({}, 1)), "quantized"), 2.0 / 10, 6.0 / 10, "tensor_int8");
  check(kernel(json_of(run.report({"tensor_int4=1T"})), "int4"), 1.0 / 10, 3.0 / 10, "tensor_int4");
}

TEST_CASE("a slice of a GPU has its share of every peak") {
  Run slice("NVIDIA A100-SXM4-80GB MIG 3g.40gb", 42);
  slice.kernel("mixed", {.fadd = kFadd, .dense = 2 * kDense, .bytes = kBytes}, 16);
  const double least = 3 * 108.0 / 42;
  check(kernel(json_of(slice.report()), "mixed"), least / 16, least / 16, "tensor_fp16");
}
