// What launches are worth, executed or by formula, is one number wherever it is said: in figures,
// phases, layers, operators, kernels, ranges, the ledger and gates, of traces and of summaries.
// What is expected is worked out from sizes, counts and data sheets' peaks.
#include <set>

#include "catch.h"
#include "gates/figures.h"
#include "gates/gate.h"
#include "reduce_bytes.h"
#include "sections/sections.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// An A100: NVIDIA's data sheet, dense, FLOP/s.
constexpr double kFp32Peak = 19.5e12, kTf32Peak = 156e12;
constexpr double kSide = 4096, kProduct = 2 * kSide * kSide * kSide, kElements = 1e6;
// Tiles that a product's sizes do not fill.
constexpr double kPadding = 1.125;

constexpr uint32_t kSgemm = 1, kTf32 = 2, kMul = 3, kOwn = 4;
constexpr int kSgemms = 3, kTf32s = 2, kMuls = 4;
constexpr int64_t kProductNs = 10'000'000, kMulNs = 20'000;

struct Scene {
  std::set<uint32_t> counted = {};  // kernels above whose counters were read
  bool own = false;                 // a launch of no operator
};

std::string trace_of(const Scene& scene) {
  TraceBuilder t;
  t.header(1);
  t.device(1, "GA100", "NVIDIA A100-SXM4-80GB", 108);
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(kSgemm, "ampere_sgemm_128x64_nn", 11);
  t.kernel(kTf32, "cutlass_80_tensorop_s1688gemm_128x128_32x3_tn_align4", 12);
  t.kernel(kMul,
           "void at::native::vectorized_elementwise_kernel<4, "
           "at::native::BinaryFunctor<float, float, float, "
           "at::native::binary_internal::MulFunctor<float> >, at::detail::Array<char*, 3> >(int)",
           13);
  t.kernel(kOwn, "mine", 14);
  if (scene.counted.contains(kSgemm)) t.samples(1, kSgemm, {sass(0, 0, kPadding * kProduct / 2)});
  if (scene.counted.contains(kTf32)) t.samples(1, kTf32, {sass(0, 0, kPadding * kProduct / 2)});
  if (scene.counted.contains(kMul)) t.samples(1, kMul, {sass(0, kElements, 0)});
  if (scene.counted.contains(kOwn)) t.samples(1, kOwn, {sass(5, 0, 0)});
  t.path(1, 0, "forward");
  t.path(2, 1, "first");
  t.path(3, 2, "aten::mm, sizes = [[4096, 4096], [4096, 4096]]");
  t.path(4, 1, "second");
  t.path(5, 4, "aten::mm, sizes = [[4096, 4096], [4096, 4096]]");
  t.path(6, 4, "aten::mul, sizes = [[1000, 1000], [1000, 1000]]");
  t.path(7, 1, "own");
  std::vector<TraceBuilder::Launch> launches;
  const auto add = [&](uint32_t signature, int count, uint32_t path, int64_t ns) {
    for (int i = 0; i < count; ++i)
      launches.push_back({.signature = signature, .duration_ns = ns, .path = path});
  };
  add(kSgemm, kSgemms, 3, kProductNs);
  add(kTf32, kTf32s, 5, kProductNs);
  add(kMul, kMuls, 6, kMulNs);
  if (scene.own) add(kOwn, 1, 7, kMulNs);
  t.launches(launches);
  t.overhead(0, 200'000'000);
  t.end();
  return t.bytes();
}

ReduceOptions options() {
  ReduceOptions reduce;
  reduce.lost = true;
  return reduce;
}

// Of the trace, and of a summary of it.
std::vector<Report> reports_of(const Scene& scene) {
  const std::string trace = trace_of(scene);
  const std::string summary = merge_bytes({{"trace", trace}}).bytes;
  std::vector<Report> reports;
  reports.push_back(reduce_bytes({trace}, options()));
  reports.push_back(reduce_bytes({summary}, options()));
  return reports;
}

constexpr const char* kKey = "flop_or_formula";
double number(const nlohmann::json& row, const std::string& key = kKey) {
  if (!row[key].is_null()) return row[key].get<double>();
  REQUIRE(row.contains(key + "_at_least"));
  return row[key + "_at_least"].get<double>();
}
double sum_of(const nlohmann::json& rows) {
  double sum = 0;
  for (const auto& row : rows) sum += number(row);
  return sum;
}

Verdict verdict_of(const Report& report, const std::string& condition) {
  Gate gate;
  std::string error;
  REQUIRE(Gate::parse(condition, gate, error));
  const std::vector<Table> tables = gate_tables(report);
  return gate.evaluate([&](const FigurePath& path) { return find_figure(tables, path); }).verdict;
}

// All places that say it say the same.
void check_worth(const Report& report, const Scene& scene, double sgemms, double tf32s, double muls,
                 Mark mark) {
  const double all = sgemms + tf32s + muls + (scene.counted.contains(kOwn) ? 5 : 0);
  const Figure total = flop_or_formula(report.total);
  REQUIRE(total.known());
  CHECK(*total.number() == Approx(all));
  CHECK(total.marks() == mark);
  const auto json = json_of(report);
  CHECK(number(json["figures"]) == Approx(all));
  CHECK(json["figures"].contains("flop_or_formula_estimated") == has(mark, Mark::kEstimate));
  CHECK(json["figures"][kKey].is_null() == has(mark, Mark::kAtLeast));
  for (const char* table : {"phases", "kernels", "signatures", "rules_used", "ranges_exclusive"}) {
    INFO(table);
    double sum = 0;
    for (const auto& row : json[table])
      if (!row[kKey].is_null() || row.contains("flop_or_formula_at_least")) sum += number(row);
    CHECK(sum == Approx(all));
  }
  const double of_operators = sgemms + tf32s + muls;
  for (const char* table : {"operators", "operator_places"}) {
    INFO(table);
    CHECK(sum_of(json[table]) == Approx(of_operators));
  }
  const auto of_layer = [&](const std::string& layer) {
    for (const auto& row : json["layer_passes"])
      if (row["pass"] == "forward" && row["layer"] == layer) return number(row);
    FAIL(layer);
    return 0.0;
  };
  CHECK(of_layer("first") == Approx(sgemms));
  CHECK(of_layer("second") == Approx(tf32s + muls));
  const auto of_kernel = [&](const std::string& part) {
    for (const auto& row : json["kernels"])
      if (row["mangled"].get<std::string>().find(part) != std::string::npos) return row;
    return nlohmann::json();
  };
  CHECK(number(of_kernel("sgemm_128x64")) == Approx(sgemms));
  CHECK(number(of_kernel("s1688gemm")) == Approx(tf32s));
  CHECK(number(of_kernel("elementwise")) == Approx(muls));
  // Gates decide by it.
  CHECK(verdict_of(report, "flop_or_formula < 1") == Verdict::kPassed);
  if (!has(mark, Mark::kAtLeast)) {
    CHECK(verdict_of(report, "flop_or_formula > 1") == Verdict::kFailed);
    CHECK(verdict_of(report, "kernels.0.flop_or_formula > 1") == Verdict::kFailed);
  }
}

}  // namespace

TEST_CASE("by formula: without counters all figures say what formulas say") {
  const Scene scene;
  for (const Report& report : reports_of(scene)) {
    check_worth(report, scene, kSgemms * kProduct, kTf32s * kProduct, kMuls * kElements,
                Mark::kEstimate);
    CHECK_FALSE(report.total.flop_known());
    const auto json = json_of(report);
    // At the peaks that names tell; MFU, roofline and ledger by the same time.
    const double sgemm_ns = kSgemms * kProduct / kFp32Peak * 1e9,
                 tf32_ns = kTf32s * kProduct / kTf32Peak * 1e9,
                 mul_ns = kMuls * kElements / kFp32Peak * 1e9;
    const double all_ns = sgemm_ns + tf32_ns + mul_ns;
    const auto of = [&](const std::string& part) {
      for (const auto& row : json["kernels"])
        if (row["mangled"].get<std::string>().find(part) != std::string::npos)
          return row["utilization_or_formula"].get<double>();
      return 0.0;
    };
    CHECK(of("sgemm_128x64") == Approx(sgemm_ns / static_cast<double>(kSgemms * kProductNs)));
    CHECK(of("s1688gemm") == Approx(tf32_ns / static_cast<double>(kTf32s * kProductNs)));
    REQUIRE(report.utilization.mfu() != nullptr);
    REQUIRE(report.utilization.mfu()->least_ns.known());
    CHECK(*report.utilization.mfu()->least_ns.number() == Approx(all_ns).epsilon(1e-3));
    const auto& ledger =
        json["lost_capacity"].is_array() ? json["lost_capacity"][0] : json["lost_capacity"];
    // Of both precisions together it is a range that holds the truth.
    CHECK(number(ledger, "uncounted_formula_ns") <= all_ns * 1.001);
    CHECK(ledger["uncounted_formula_ns_at_most"].get<double>() >= all_ns * 0.999);
  }
}

TEST_CASE("by formula: counts of a part go before formulas") {
  const Scene scene{.counted = {kSgemm, kMul}};
  for (const Report& report : reports_of(scene)) {
    check_worth(report, scene, kSgemms * kProduct * kPadding, kTf32s * kProduct, kMuls * kElements,
                Mark::kEstimate);
    CHECK(number(json_of(report)["figures"], "flop") ==
          Approx(kSgemms * kProduct * kPadding + kMuls * kElements));
  }
}

TEST_CASE("by formula: with all counts nothing is by formula, and nothing is marked") {
  const Scene scene{.counted = {kSgemm, kTf32, kMul, kOwn}, .own = true};
  for (const Report& report : reports_of(scene)) {
    check_worth(report, scene, kSgemms * kProduct * kPadding, kTf32s * kProduct * kPadding,
                kMuls * kElements, Mark::kNone);
    CHECK(report.total.by_formula.launches == 0);
    CHECK(flop_or_formula(report.total).value() == flop_of(report.total).value());
  }
}

TEST_CASE("by formula: what has neither a count nor a formula leaves a lower bound") {
  const Scene scene{.own = true};
  for (const Report& report : reports_of(scene)) {
    check_worth(report, scene, kSgemms * kProduct, kTf32s * kProduct, kMuls * kElements,
                Mark::kEstimate | Mark::kAtLeast);
    CHECK(text_of(report).find("Of kernels without a FLOP count, by their operators' formulas") !=
          std::string::npos);
  }
}

// In all tables of this report, as of any.
TEST_CASE("by formula: a figure that is a range is in a column that says so") {
  for (const Report& report : reports_of(Scene{}))
    for (const Table& table : gate_tables(report))
      table.for_each_row([&](const TableRow& row) {
        for (size_t i = 0; i < row.size(); ++i) {
          INFO(table.key << '.' << table.columns[i].key);
          CHECK((!row[i].most || table.columns[i].range));
        }
      });
}
