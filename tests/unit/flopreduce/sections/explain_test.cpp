// Explanations, processes side by side, and what nobody measured.
#include "report/explain.h"

#include <algorithm>
#include <set>

#include "catch.h"
#include "reduce_bytes.h"
#include "sections/screens/explanation.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// gemm: 100 in forward/layer, 60 in backward, 64 FMA each; relu: 10 in forward; lost: not measured.
std::string job() {
  TraceBuilder t = started(1);
  t.kernel(1, "gemm", 11);
  t.kernel(2, "relu", 12);
  t.kernel(3, "lost", 13);
  t.path(1, 0, "forward");
  t.path(2, 1, "layer");
  t.path(3, 0, "backward");
  t.samples(1, 1, {sass(0, 0, 64), sass(0, 0, 64)});
  t.samples(1, 2, {sass(5, 0, 0)});
  t.tally({{1, 100, 0, 0, 2}, {1, 60, 0, 0, 3}, {2, 10, 0, 0, 1}, {3, 4, 4, 400, 3}});
  t.ledger(174, 174, 0);
  t.end();
  return t.bytes();
}

std::string said(const Report& report, const Explanation& e) {
  std::ostringstream out;
  write_text(out, explanation_sections(report, e), {});
  return out.str();
}

using Json = nlohmann::ordered_json;

Json tables_of(const Report& report, const Explanation& e) {
  return json_of(explanation_tables(report, e));
}

// The row of a table that has this text there.
const Json& row_of(const Json& rows, const char* column, const std::string& text) {
  const auto found =
      std::ranges::find_if(rows, [&](const Json& row) { return row[column] == text; });
  REQUIRE(found != rows.end());
  return *found;
}

}  // namespace

TEST_CASE("an explanation says which rules told its launches' phases") {
  const Report r = reduce_bytes({job()});
  const Explanation e = explain(r, {FigureKind::kKernel, "gemm"});
  REQUIRE(e.part.rules.size() == 2);
  CHECK(e.part.rules[0].rule == "range has the word 'forward'");
  CHECK(e.part.rules[0].work.launches == 100);
  CHECK(e.part.rules[1].phase == "backward");
  CHECK(e.part.rules[1].work.launches == 60);
  CHECK(said(r, e).find("range has the word 'backward'") != std::string::npos);
}

TEST_CASE("parts of a figure add up to it, and to the report's own") {
  const Report r = reduce_bytes({job()});
  const auto flop = [&](FigureKind kind, const char* name) {
    const Explanation e = explain(r, {kind, name});
    u128 sum = 0;
    for (const auto& s : e.part.signatures) sum += s.work.flop;
    CHECK(sum == e.part.total.flop);
    sum = 0;
    for (const auto& s : group(e.part, {by::kRange, by::kKernel})) sum += s.work.flop;
    CHECK(sum == e.part.total.flop);
    return to_decimal(e.part.total.flop);
  };
  CHECK(flop(FigureKind::kTotal, "total") == "20530");  // 160 * 128 + 10 * 5
  CHECK(flop(FigureKind::kKernel, "gemm") == "20480");
  CHECK(flop(FigureKind::kRange, "forward") == "12850");  // with the layer below it
  CHECK(flop(FigureKind::kRange, "forward/layer") == "12800");
  CHECK(flop(FigureKind::kPhase, "backward") == "7680");
}

TEST_CASE("an explanation has layers and operators of its launches") {
  const Report r = reduce_bytes({job()});
  const auto layers = tables_of(r, explain(r, {FigureKind::kKernel, "gemm"}))["explained_layers"];
  REQUIRE(layers.size() == 2);
  CHECK(row_of(layers, "layer", "layer")["flop"] == 12800);
  CHECK(layers[1]["layer"].is_null());
  CHECK(layers[1]["flop"] == 7680);
}

TEST_CASE("a kernel's derivation names samples, metric, weight and ranges") {
  const Report r = reduce_bytes({job()});
  const Explanation e = explain(r, {FigureKind::kKernel, "gemm"});
  const auto& m = e.part.signatures[0].metrics;
  const auto ffma = std::find_if(m.begin(), m.end(), [](const auto& x) { return x.stat.mean > 0; });
  REQUIRE(ffma != m.end());
  CHECK(ffma->stat.n == 2);
  CHECK(ffma->counted == 160 * 64);
  CHECK(ffma->meaning.numerator == 2);
  CHECK(ffma->flop == 160 * 128);
  CHECK(ffma->precision == "fp32");
  const std::string text = said(r, e);
  for (const char* part : {"kernel gemm", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                           "10,240", "20,480", "64.00", "forward/layer", "one FMA counts 2"}) {
    INFO(part << " in\n" << text);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(said(r, explain(r, {FigureKind::kKernel, "lost"}))
            .find("4 launches have no FLOP count: their kernels have no sample of the counters "
                  "'sass'") != std::string::npos);
  const auto json = tables_of(r, e);
  CHECK(json["explained"][0]["flop"] == 20480);
  // The same for programs: FLOP are counted x weight, and all signatures' together the figure's.
  const Json& sample = row_of(json["samples"], "metric", ffma->metric);
  CHECK(sample["mean"] == 64);
  CHECK(sample["counted"] == 10'240);
  CHECK(sample["weight_numerator"] == 2);
  CHECK(sample["flop"] == 20'480);
  CHECK(json["signatures"].size() == 1);
  CHECK(json["signatures"][0]["flop"] == 20480);
}

TEST_CASE("what a sample counted can be multiplied again: whole numbers are in full") {
  TraceBuilder t = started(1);
  t.kernel(1, "gemm", 11);
  t.samples(1, 1, {sass(0, 0, 2'359'296)});
  t.tally({{1, 20, 0, 0, 0}});
  t.ledger(20, 20, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const std::string text = said(r, explain(r, {FigureKind::kKernel, "gemm"}));
  INFO(text);
  for (const char* part : {"2,359,296", "47,185,920", "94,371,840"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("kernels of one shown name are explained one by one, by their mangled names") {
  TraceBuilder t = started(1);
  t.kernel(1, "_ZN1aL1kEi", 11);  // a::k(int), of two files
  t.kernel(2, "_ZN1a1kEi", 12);
  t.samples(1, 1, {sass(0, 0, 1)});
  t.samples(1, 2, {sass(0, 0, 10)});
  t.tally({{1, 10, 0, 0, 0}, {2, 1000, 0, 0, 0}});
  t.ledger(1010, 1010, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  REQUIRE(r.kernels.size() == 2);
  REQUIRE(r.kernels[0].name == r.kernels[1].name);
  const auto figures = figures_named(r, "a::k(int)");
  REQUIRE(figures.size() == 2);
  std::set<std::string> asked;
  for (const NamedFigure& figure : figures) asked.insert(asked_by(figure, figures));
  CHECK(asked == std::set<std::string>{"kernel:_ZN1aL1kEi", "kernel:_ZN1a1kEi"});
  const auto one = figures_named(r, "_ZN1aL1kEi", FigureKind::kKernel);
  REQUIRE(one.size() == 1);
  CHECK(explain(r, one[0]).part.total.launches == 10);
  CHECK(to_decimal(explain(r, one[0]).part.total.flop) == "20");
}

TEST_CASE("names: in full, in part, in doubt, and the nearest") {
  const Report r = reduce_bytes({job()});
  REQUIRE(figures_named(r, "gemm").size() == 1);
  CHECK(figures_named(r, "GEM")[0].name == "gemm");
  // The layer and its only range are the same launches, and so are forward's phase and range.
  REQUIRE(figures_named(r, "layer").size() == 1);
  CHECK(figures_named(r, "layer")[0].kind == FigureKind::kLayer);
  CHECK(figures_named(r, "forward").size() == 1);
  CHECK(figures_named(r, "layer", FigureKind::kRange)[0].name ==
        "forward/layer");  // by its innermost range
  CHECK(figures_named(r, "E").size() > 1);
  CHECK(figures_named(r, "rel").size() == 1);
  CHECK(figures_named(r, "convolution").empty());
  CHECK(figures_near(r, "gemv")[0].name == "gemm");
}

TEST_CASE("names that hold a slash: explanations and report agree") {
  TraceBuilder t = started(1);
  t.kernel(1, "gemm", 11);
  t.path(1, 0, "model");
  t.path(2, 1, "dense");        // model/dense
  t.path(3, 0, "model/dense");  // TensorFlow's and JAX's names have slashes
  t.path(4, 3, "x");
  t.samples(1, 1, {sass(0, 0, 50)});
  t.tally({{1, 1, 0, 0, 1}, {1, 2, 0, 0, 2}, {1, 40, 0, 0, 3}, {1, 100, 0, 0, 4}});
  t.ledger(143, 143, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  REQUIRE(r.ranges.size() == 4);
  std::set<std::string> paths;
  const auto all = group(r, {by::kAnyRange});
  for (size_t i = 0; i < r.ranges.size(); ++i) {
    const RangeReport& range = r.ranges[i];
    INFO(range.path);
    CHECK(paths.insert(range.path).second);  // each can be asked for
    const auto figures = figures_named(r, range.path, FigureKind::kRange);
    REQUIRE(figures.size() == 1);
    CHECK(to_decimal(explain(r, figures[0]).part.total.flop) == to_decimal(all[i].work.flop));
    CHECK(explain(r, {FigureKind::kRange, range.path}).part.total.launches == all[i].work.launches);
  }
  CHECK(explain(r, {FigureKind::kRange, "model"}).part.total.flop == 3 * 100);
  CHECK(explain(r, {FigureKind::kRange, "model\\/dense"}).part.total.flop == 140 * 100);
  CHECK(explain(r, {FigureKind::kRange, "model\\/dense/x"}).part.total.flop == 100 * 100);
}

TEST_CASE("a slash in a name that no other path is stays as it is") {
  TraceBuilder t = started(1);
  t.kernel(1, "gemm", 11);
  t.path(1, 0, "model/dense");
  t.samples(1, 1, {sass(0, 0, 50)});
  t.tally({{1, 1, 0, 0, 1}});
  t.ledger(1, 1, 0);
  t.end();
  CHECK(reduce_bytes({t.bytes()}).ranges[0].path == "model/dense");
}

TEST_CASE("a layer is what its ranges hold in all phases") {
  TraceBuilder t = started(1);
  t.kernel(1, "gemm", 11);
  const char* const names[] = {"step", "forward", "fc1", "backward", "fc1", "fc10"};
  const uint32_t parents[] = {0, 1, 2, 1, 4, 4};
  for (uint32_t p = 1; p <= 6; ++p) t.path(p, parents[p - 1], names[p - 1]);
  t.samples(1, 1, {sass(0, 0, 64)});
  t.tally({{1, 10, 0, 0, 3}, {1, 20, 0, 0, 5}, {1, 7, 0, 0, 6}});
  t.ledger(37, 37, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  REQUIRE(figures_named(r, "fc1").size() == 1);
  CHECK(explain(r, {FigureKind::kLayer, "fc1"}).part.total.flop == 30 * 128);
  CHECK(explain(r, {FigureKind::kLayer, "fc10"}).part.total.flop == 7 * 128);
}

TEST_CASE("the peaks of a figure: row, clock, source, least time") {
  TraceBuilder t;
  t.header(1);
  t.device(1, "GH100", "NVIDIA H100 PCIe", 114);
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "gemm", 11);
  t.samples(1, 1, {sass(0, 0, 25'600'000)});  // 51.2 MFLOP: a microsecond at 51.2 TFLOP/s
  t.launches({{1, 4'000, 0}, {1, 4'000, 0}});
  t.ledger(2, 2, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const Explanation e = explain(r, {FigureKind::kKernel, "gemm"});
  REQUIRE(e.part.utilization.devices.size() == 1);
  const auto j = tables_of(r, e)["explained_peaks"];
  const Json& fp32 = row_of(j, "of", "fp32");
  CHECK(fp32["row"] == "H100 PCIe 80GB");
  CHECK(fp32["per_second"] == 51.2e12);
  CHECK(fp32["least_ns"].get<double>() == Approx(2'000));
  CHECK(row_of(j, "of", "all")["utilization"].get<double>() == Approx(0.25));
  CHECK_FALSE(fp32["source"].get<std::string>().empty());
  const std::string text = said(r, e);
  for (const char* part : {"peaks of H100 PCIe 80GB", "1,755", "2.000 us", "25.0 %"}) {
    INFO(part << " in\n" << text);
    CHECK(text.find(part) != std::string::npos);
  }
}

namespace {

std::string rank_of(int rank, uint64_t backward_ns, uint64_t start_ns) {
  TraceBuilder t;
  t.rank_header(10 + static_cast<uint64_t>(rank), rank, start_ns);
  t.device();
  t.stream();
  t.kernel(1, "gemm", 11);
  t.path(1, 0, "forward");
  t.path(2, 0, "backward");
  t.tally({{1, 10, 10, 1000, 1}, {1, 20, 16, backward_ns, 2}});
  t.ledger(30, 30, 0);
  t.end();
  return t.bytes();
}

}  // namespace

TEST_CASE("processes side by side: order, missing ranks, slow ones, skew") {
  const Report r =
      reduce_bytes({rank_of(4, 900, 5'000), rank_of(0, 600, 4'000), rank_of(1, 500, 4'500)});
  REQUIRE(r.traces.size() == 3);
  CHECK(r.traces[0].rank() == 0);
  CHECK(r.traces[2].rank() == 4);
  CHECK(r.traces[2].start_skew_ns == 1'000);
  CHECK(r.ranks.missing == std::vector<uint32_t>{2, 3});
  // The kernel's mean is 5000 / 78: 30 launches of 100 ns in forward, 48 of 2000 ns in backward.
  // Four launches of each process have no time: 256 ns.
  CHECK(r.traces[0].work.time.ns == 1000 + 600 + 256);
  CHECK(r.traces[0].work.time.estimated == 4);
  // Usual are 1000 ns of forward, and of backward 600, the median of 500, 600 and 900.
  REQUIRE(r.ranks.slowdowns.size() == 3);
  for (const RankSlowdown& s : r.ranks.slowdowns) {
    const uint64_t backward[] = {600, 500, 900};
    CHECK(s.timed_ns == 1000 + backward[s.trace]);
    CHECK(*s.slowdown() == Approx(double(s.timed_ns) / 1600));
  }
  u128 all = 0;
  for (const auto& trace : r.traces) all += trace.work.time.ns;
  CHECK(static_cast<double>(all) == Approx(static_cast<double>(r.total.time.ns)).margin(6));
  const std::string text = text_of(r);
  const size_t missing = text.find("No trace of ranks 2, 3: totals are of the other ranks only");
  CHECK(missing < text.find("kernel launches"));  // at the top
  const std::string slow = text.substr(std::min(text.size(), text.find("Slow: rank 4")));
  CHECK(slow.substr(0, slow.find('\n')).find("kernels take 1.19 times as long") != slow.npos);
  CHECK(text.find("Slow: rank 0") == std::string::npos);
}

TEST_CASE("a rank is slow by its kernels beside the same kernels on other ranks") {
  // gemm of forward and of backward by the mean time of a launch; the number of launches differs.
  struct Means {
    uint64_t forward, backward, launches;
  };
  const auto rank = [](int number, const Means& means) {
    TraceBuilder t;
    t.rank_header(10 + static_cast<uint64_t>(number), number, 5'000);
    t.device();
    t.stream();
    t.kernel(1, "gemm", 11);
    t.kernel(2, "ncclDevKernel_AllReduce", 12);
    t.kernel(3, "of_rank_" + std::to_string(number), 13 + static_cast<uint64_t>(number));
    t.path(1, 0, "forward");
    t.path(2, 0, "backward");
    const uint64_t n = means.launches;
    t.tally({{1, n, n, n * means.forward, 1},
             {1, 2 * n, 2 * n, 2 * n * means.backward, 2},
             {1, 5, 5, 1'000'000, 1, true},                            // slowed by measuring
             {2, n, n, n * 1000 * static_cast<uint64_t>(9 - number)},  // waits for the slow one
             {3, n, n, n * 7777, 1}});                                 // on no other rank
    t.ledger(5 + 5 * n, 5 + 5 * n, 0);
    t.end();
    return t.bytes();
  };
  const std::vector<std::string> job{rank(0, {100, 400, 10}), rank(1, {100, 420, 20}),
                                     rank(2, {130, 520, 10}), rank(3, {90, 400, 10})};
  ReduceOptions options;
  options.facts = true;
  const auto report = json_of(reduce_bytes(job, options));
  // Usual are 100, the median of 90, 100, 100, 130, and 410, of 400, 400, 420, 520.
  const uint64_t timed[] = {10 * 100 + 20 * 400, 20 * 100 + 40 * 420, 10 * 130 + 20 * 520,
                            10 * 90 + 20 * 400};
  REQUIRE(report["rank_slowdown"].size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    const auto& row = report["rank_slowdown"][i];
    const uint64_t usual = (i == 1 ? 2 : 1) * (10 * 100 + 20 * 410);
    INFO(row);
    CHECK(row["rank"] == i);
    CHECK(row["device"] == 0);
    CHECK(row["timed_ns"] == timed[i]);
    CHECK(row["usual_ns"] == usual);
    CHECK(row["slowdown"].get<double>() == Approx(double(timed[i]) / double(usual)));
  }
  // The same of their summary, and nothing where no other rank has its kernels.
  std::vector<Named> named;
  for (const std::string& bytes : job) named.push_back({std::to_string(named.size()), bytes});
  CHECK(json_of(reduce_bytes({merge_bytes(named).bytes}, options))["rank_slowdown"] ==
        report["rank_slowdown"]);
  const auto alone = json_of(reduce_bytes({job[0]}, options));
  CHECK(alone["rank_slowdown"].empty());
  // Text has the same, though it has no facts: 11,700 of 9,200 ns, and no other by 5 %.
  const std::string text = text_of(reduce_bytes(job));
  const std::string slow = text.substr(std::min(text.size(), text.find("Slow: ")));
  CHECK(slow.starts_with("Slow: rank 2"));
  CHECK(slow.substr(0, slow.find('\n')).find("kernels take 1.27 times as long") != slow.npos);
  CHECK(slow.rfind("Slow: ") == 0);
}

TEST_CASE("a process whose launches were slowed by measuring is not slow") {
  // Four equal ranks; all launches of rank 0 ran in windows and took five times as long.
  const auto rank = [](int number, bool windowed) {
    TraceBuilder t;
    t.rank_header(10 + static_cast<uint64_t>(number), number, 5'000);
    t.device();
    t.stream();
    t.kernel(1, "gemm", 11);
    t.path(1, 0, "forward");
    t.tally({{1, 10, 10, windowed ? 5'000U : 1'000U, 1, windowed}});
    t.ledger(10, 10, 0);
    t.end();
    return t.bytes();
  };
  const Report r = reduce_bytes({rank(0, true), rank(1, false), rank(2, false), rank(3, false)});
  CHECK(r.total.time.ns == 4'000);  // rank 0 has the others' mean
  CHECK(r.traces[0].work.time.ns == 1'000);
  CHECK(r.traces[0].work.time.estimated == 10);
  REQUIRE(r.ranks.slowdowns.size() == 3);
  for (const RankSlowdown& s : r.ranks.slowdowns) CHECK(s.slowdown() == 1);
  CHECK(text_of(r).find("Slow: ") == std::string::npos);

  // Where no process timed the kernel outside of windows, nothing is compared.
  const Report none = reduce_bytes({rank(0, true), rank(1, true)});
  CHECK(none.ranks.slowdowns.empty());
  CHECK(none.traces[0].work.time.windowed == 10);
  CHECK(json_of(none)["ranks"][0].contains("gpu_time_ns_at_most"));
  CHECK(text_of(none).find("<= 5.000 us") != std::string::npos);
}

TEST_CASE("what no process measured is listed with its share and reason") {
  const Report r = reduce_bytes({job()});
  const auto j = json_of(r);
  CHECK(j["unmeasured"].size() == 1);
  CHECK(j["figures"]["coverage"].get<double>() == Approx(170.0 / 174));
  CHECK(text_of(r).find("Not measured by any process") != std::string::npos);
}

TEST_CASE("coverage as it grew is kept at powers of two of the launches, and no more") {
  const auto ledger = [](uint64_t launches) {
    flopinj::trace::Ledger l;
    l.add_device()->set_recorded(launches);
    l.set_covered_launches(launches / 2);
    return l;
  };
  CoverageGrowth growth;
  for (uint64_t launches = 0; launches < 100'000; launches += 3) growth.add(ledger(launches));
  REQUIRE(growth.points().size() == 16);  // 3, 6, 9, 18, ..., 65538
  CoverageGrowth again;
  for (const auto& point : growth.points()) {
    CHECK(point.covered_launches == point.launches / 2);
    CHECK(again.add(ledger(point.launches)));
    CHECK_FALSE(again.add(ledger(point.launches)));
  }
}

TEST_CASE("a precision is its part of every kernel's FLOP, with its own metrics and peak") {
  TraceBuilder t;
  t.header(1);
  t.device(1, "GH100", "NVIDIA H100 PCIe", 114);
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "mixed", 11);
  t.kernel(2, "single", 12);
  t.kernel(3, "lost", 13);
  t.samples(1, 1, {sass(0, 0, 100, 10, 0)});  // a launch: 200 of fp32, 20 of fp64
  t.samples(1, 2, {sass(7, 0, 0)});           // 7 of fp32
  t.launches({{1, 4'000}, {1, 4'000}, {1, 4'000}, {2, 1'000}, {3, 1'000}});
  t.ledger(5, 5, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  REQUIRE(figures_named(r, "fp64").size() == 1);
  CHECK(figures_named(r, "fp64")[0].kind == FigureKind::kPrecision);
  CHECK(figures_named(r, "tensor_fp16").empty());  // nothing ran in it

  const Explanation fp64 = explain(r, {FigureKind::kPrecision, "fp64"});
  const Explanation fp32 = explain(r, {FigureKind::kPrecision, "fp32"});
  CHECK(fp64.part.total.flop == 3 * 20);
  CHECK(fp32.part.total.flop == 3 * 200 + 7);
  CHECK(fp64.part.total.flop + fp32.part.total.flop == r.total.flop);
  REQUIRE(fp64.part.signatures.size() == 2);  // mixed, and lost, which may have some too
  CHECK(fp64.part.signatures[0].kernel == "mixed");
  CHECK(fp64.part.signatures[0].flop_per_launch == u128{20});
  CHECK(fp64.part.signatures[1].work.unmeasured == 1);
  CHECK_FALSE(fp64.part.total.flop_complete());

  const std::string text = said(r, fp64);
  for (const char* part : {"precision fp64", ">= 60 FLOP", "op_dfma_pred_on.sum", "10.00"}) {
    INFO(part << " in\n" << text);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("op_ffma") == std::string::npos);
  // 60 FLOP at the 25.6 TFLOP/s of NVIDIA's data sheet; the launches' time is not that of fp64
  // alone.
  const auto peaks = tables_of(r, fp64)["explained_peaks"];
  CHECK(peaks.size() == 2);                           // fp64, and all of it
  const Json& at_peak = row_of(peaks, "of", "fp64");  // at least, without what "lost" did
  CHECK(at_peak["flop_at_least"] == 60);
  CHECK(at_peak["least_ns"].is_null());
  CHECK(at_peak["least_ns_at_least"].get<double>() == Approx(60 / 25.6e3));
  CHECK(row_of(peaks, "of", "all")["utilization"].is_null());
}

TEST_CASE("an estimate of two precisions at once has no interval for one of them") {
  TraceBuilder t = started(1);
  t.kernel(1, "mixed", 11);
  t.kernel(2, "single", 12);
  for (uint64_t i = 0; i < 8; ++i) {
    const auto some = static_cast<double>(10 + i % 3);
    t.placed_sample(1, 1, static_cast<uint32_t>(i + 1), 10 * i, sass(0, 0, some, some));
    t.placed_sample(1, 2, static_cast<uint32_t>(i + 1), 10 * i, sass(0, 0, some));
  }
  t.tally({{1, 100, 0, 0, 0}, {2, 100, 0, 0, 0}});
  t.ledger(200, 200, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const Explanation fp64 = explain(r, {FigureKind::kPrecision, "fp64"});
  CHECK(fp64.mixed_estimates == 100);
  CHECK(tables_of(r, fp64)["explained"][0]["flop_low"].is_null());
  CHECK(tables_of(r, fp64)["signatures"][0]["flop_high"].is_null());
  CHECK(said(r, fp64).find("intervals are of all precisions together") != std::string::npos);
  const Explanation kernel = explain(r, {FigureKind::kKernel, "single"});
  CHECK(kernel.mixed_estimates == 0);
  CHECK_FALSE(tables_of(r, kernel)["explained"][0]["flop_low"].is_null());
  CHECK_FALSE(tables_of(r, kernel)["explained"][0]["flop_high"].is_null());
}

TEST_CASE("the ratio: what makes each side, and the expectation") {
  TraceBuilder t = started(1);
  t.kernel(1, "gemm", 11);
  t.kernel(2, "bias", 12);
  t.path(1, 0, "forward");
  t.path(2, 1, "fc1");
  t.path(3, 1, "fc2");
  t.path(4, 0, "backward");
  t.path(5, 0, "loss");
  t.samples(1, 1, {sass(0, 0, 64)});  // 128 FLOP, all of it matrix work
  t.samples(1, 2, {sass(8, 0, 0)});   // 8 additions
  t.tally({{1, 10, 0, 0, 2}, {1, 30, 0, 0, 3}, {2, 5, 0, 0, 3}, {1, 70, 0, 0, 4}, {2, 3, 0, 0, 5}});
  t.ledger(118, 118, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  REQUIRE(figures_named(r, "ratio").size() == 1);
  const Explanation e = explain(r, figures_named(r, "ratio")[0]);
  const auto j = tables_of(r, e);
  CHECK(row_of(j["phases"], "phase", "backward")["flop"] == 8960);  // 70 * 128
  const Json& forward = row_of(j["phases"], "phase", "forward");
  CHECK(forward["flop"] == 5160);  // 40 * 128 + 5 * 8
  CHECK(forward["matrix_flop"] == 5120);
  CHECK(*r.ratio.ratio.number() == Approx(8960.0 / 5160));
  CHECK(*r.ratio.matrix_ratio.number() == Approx(1.75));
  const auto figure = [&](const char* name) {
    return row_of(j["ratio"], "figure", name)["value"].get<double>();
  };
  CHECK(figure("backward / forward") == Approx(8960.0 / 5160));
  CHECK(figure("matrix work only") == Approx(1.75));
  // The first layer has 1280 of the 5120; no gradient for its input: (2 * 5120 - 1280) / 5120.
  CHECK(r.ratio.first_layers_flop == 1280);
  CHECK(r.ratio.layered_flop == 5120);
  CHECK_FALSE(r.ratio.expected->certain());
  CHECK(figure("expected of matrix work, least") == 1.75);
  CHECK(figure("expected of matrix work, most") == 2);
  CHECK(r.ratio.verdict == RatioVerdict::kUndecided);
  const Json& kernels = j["stacks"];
  REQUIRE(kernels.size() == 4);  // gemm on both sides, in forward in two layers, and bias
  CHECK(kernels[0]["phase"] == "backward");
  CHECK(kernels[0]["launches"] == 70);
  CHECK(kernels[3]["kernel"] == "bias");
  CHECK(kernels[3]["flop"] == 40);
  CHECK(e.part.total.launches == 115);  // without the loss
  const std::string text = said(r, e);
  for (const char* part :
       {"1.736", "8,960", "5,160", "5,120", "1,280", "undecided: backward names no layer",
        "Kernels of forward", "Kernels of backward", "loss", "forward/fc1", "Signatures"}) {
    INFO(part << " in\n" << text);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("utilization: least time at peak over each time, as executed and by formula") {
  // On each of two devices 2 launches of 51.2 MFLOP, 1 us at the 51.2 TFLOP/s of an H100 PCIe; each
  // takes 4 us, and the recording 0.1 ms.
  TraceBuilder t;
  t.header(1);
  for (uint32_t d = 1; d <= 2; ++d) {
    t.device(d, "GH100", "NVIDIA H100 PCIe", 114);
    t.stream(d, d);
    t.group(d, "sass", sass_metrics(), true, d);
  }
  t.kernel(1, "gemm", 11);
  for (uint32_t d = 1; d <= 2; ++d) t.samples(d, 1, {sass(0, 0, 25'600'000)});
  for (uint32_t d = 1; d <= 2; ++d) t.launches({{1, 4'000}, {1, 4'000}}, 0, d);
  t.ledger(2, 2, 0, 1);
  t.ledger(2, 2, 0, 2);
  t.overhead(2'000, 100'000);
  t.end();
  ReduceOptions options;
  options.utilization.formula_flop = 2 * 51.2e6;  // half of what was executed
  const Report r = reduce_bytes({t.bytes()}, std::move(options));
  const Explanation e = explain(r, {FigureKind::kShareOfPeak, "utilization"});
  const auto j = tables_of(r, e)["utilization"];
  const Json& hfu = j[0];
  CHECK(hfu["name"] == "executed");
  CHECK(hfu["least_ns"].get<double>() == Approx(4'000));
  CHECK(hfu["gpu_time_ns"] == 16'000);
  CHECK(hfu["utilization_gpu_time"].get<double>() == Approx(0.25));
  CHECK(r.utilization.busy_ns.number() == 16'000);  // 8 us on each of the two
  CHECK(hfu["utilization_busy"].get<double>() == Approx(0.25));
  const Json& mfu = j[1];
  CHECK(mfu["name"] == "formula");
  CHECK(mfu["least_ns"].get<double>() == Approx(2'000));
  CHECK(mfu["utilization_gpu_time"].get<double>() == Approx(0.125));
  // The recording's wall time is one, whatever the number of devices: utilization has it for each
  // device, our own cost is a share of the one.
  CHECK(hfu["wall_device_ns"] == 200'000);
  CHECK(hfu["utilization_wall"].get<double>() == Approx(0.02));
  const auto report = json_of(r);
  CHECK(report["ranks"][0]["wall_ns"] == 100'000);
  const std::string whole = text_of(r);
  CHECK(whole.find("wall time counts for each") != std::string::npos);
  const size_t own = whole.find("profiler overhead ");
  REQUIRE(own != std::string::npos);
  const std::string row = whole.substr(own, whole.find('\n', own) - own);
  INFO(row);
  CHECK(row.find("2.000 us") != std::string::npos);
  CHECK(row.ends_with(" 2.0 %"));
  const std::string text = said(r, e);
  for (const char* part :
       {"4.000 us  16.00 us  200.0 us", "2.000 us  16.00 us  200.0 us", "HFU  2.0 %", "25.0 %",
        "12.5 %", "204.8 MFLOP", "fp32 51.2 TFLOP/s", "source: NVIDIA H100"}) {
    INFO(part << " in\n" << text);
    CHECK(text.find(part) != std::string::npos);
  }
}
