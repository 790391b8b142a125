// FLOP, times and ledger of small traces, worked out by hand.
#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

TEST_CASE("equal samples make an exact figure for every launch") {
  TraceBuilder t = started();
  t.kernel(1, "gemm", 11);
  t.samples(1, 1, {sass(3, 5, 1000), sass(3, 5, 1000)});
  t.tally({{1, 999'999'999'999, 0, 0}});
  t.ledger(999'999'999'999, 999'999'999'999, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK_FALSE(r.partial);
  // 2008 FLOP a launch: 3 adds, 5 multiplications, 1000 multiply-adds of two.
  CHECK(to_decimal(r.total.flop) == "2007999999997992");
  CHECK(r.ledger.total == LedgerLine{999'999'999'999, 2, 999'999'999'997, 0, 0});
  REQUIRE(r.signatures.size() == 1);
  CHECK(r.signatures[0].flop_per_launch == u128{2008});
  CHECK_FALSE(r.signatures[0].varying);
}

TEST_CASE("of a revised tally only the highest revision counts, wherever it stands") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.samples(1, 1, {sass(1, 0, 0)});
  t.revised_tally(3, 9, {{1, 900, 900, 9'000}});  // written over the fourth
  t.revised_tally(3, 8, {{1, 800, 800, 8'000}});
  t.revised_tally(4, 5, {{1, 70, 70, 700}, {2, 30, 0, 0}});  // rows of its own, one of a kernel
  t.revised_ledger(1, 9, 1'000);
  t.revised_ledger(1, 8, 900);
  t.kernel(2, "later", 12);                   // defined only here
  t.revised_tally(4, 5, {{1, 70, 70, 700}});  // the same again
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK_FALSE(r.partial);
  CHECK(r.ledger.disagreements.empty());
  CHECK(r.ledger.total.launches == 1'000);
  CHECK(to_decimal(r.total.flop) == "970");

  // The newest revision torn: the one before it counts, and the rest of the file is used.
  std::string torn = t.bytes();
  const size_t at = torn.find(std::string(100, '\0'));
  REQUIRE(at != std::string::npos);
  torn[at] = 1;
  const Report before = reduce_bytes({torn});
  CHECK(before.partial);
  CHECK(to_decimal(before.total.flop) == "870");
  CHECK(before.ledger.total == LedgerLine{1'000, 1, 869, 30, 100});
}

namespace {

nlohmann::json precisions_of(const nlohmann::json& report) {
  nlohmann::json flop;
  for (const auto& row : report["precisions"])
    flop[row["precision"].get<std::string>()] = row["flop"];
  return flop;
}

}  // namespace

TEST_CASE("the FMA convention touches multiply-adds alone") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.samples(1, 1, {{1, 10, 100, 1000, 10000, 100000, 7, 70, 700}});
  t.launches({{1}, {1}});
  t.end();
  const auto two = json_of(reduce_bytes({t.bytes()}));
  const auto one = json_of(reduce_bytes({t.bytes()}, {.fma = 1, .rules = {}}));
  CHECK(two["figures"]["fma"] == 2);
  CHECK(precisions_of(two) == nlohmann::json{{"fp32", 422}, {"fp64", 422000}, {"fp16", 5908}});
  CHECK(precisions_of(one) == nlohmann::json{{"fp32", 222}, {"fp64", 222000}, {"fp16", 3108}});
}

TEST_CASE("samples that disagree give their mean, spread and number") {
  TraceBuilder t = started();
  t.kernel(1, "search", 11);
  t.samples(1, 1, {sass(10, 0, 0), sass(20, 0, 0), sass(33, 0, 0)});
  t.launches({{1}, {1}, {1}, {1}, {1}, {1}, {1}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  // 63 for the three sampled, 21 for each of the other four.
  CHECK(to_decimal(r.total.flop) == "147");
  const auto& s = r.signatures.at(0);
  CHECK(s.varying);
  CHECK(s.samples == 3);
  CHECK_FALSE(s.flop_per_launch.has_value());
  const auto fadd = std::find_if(s.metrics.begin(), s.metrics.end(), [](const auto& m) {
    return m.metric.find("fadd") != std::string::npos;
  });
  REQUIRE(fadd != s.metrics.end());
  CHECK(fadd->stat.mean == Approx(21));
  CHECK(fadd->stat.spread() == Approx(std::sqrt((121.0 + 1 + 144) / 2)));
  CHECK(text_of(r).find("varying") != std::string::npos);
}

TEST_CASE("rows of a varying signature add up to its total exactly") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.path(1, 0, "forward");
  t.path(2, 0, "backward");
  t.path(3, 0, "elsewhere");
  t.samples(1, 1, {sass(1, 0, 0), sass(2, 0, 0), sass(2, 0, 0)});
  t.tally({{1, 101, 0, 0, 1}, {1, 103, 0, 0, 2}, {1, 107, 0, 0, 3}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(to_decimal(r.total.flop) == "518");  // 311 * 5 / 3 = 518.33
  u128 sum = 0;
  for (const auto& p : r.phases) sum += p.work.flop;
  CHECK(sum == r.total.flop);
  sum = 0;
  for (const auto& p : group(r, {by::kRange})) sum += p.work.flop;
  CHECK(sum == r.total.flop);
}

TEST_CASE("what was not measured is never zero") {
  TraceBuilder t = started();
  t.kernel(1, "measured", 11);
  t.kernel(2, "never", 12);
  t.samples(1, 1, {sass(0, 0, 50)});
  t.launches({{1}, {2}, {2}, {1}});
  t.ledger(4, 4, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(balances(r));
  CHECK(r.ledger.total == LedgerLine{4, 1, 1, 2, 0});
  REQUIRE(r.ledger.unmeasured.size() == 1);
  CHECK(r.ledger.unmeasured[0].reason == "not_sampled:sass");
  CHECK(r.ledger.unmeasured[0].launches == 2);
  const auto j = json_of(r);
  CHECK(j["figures"]["flop"].is_null());
  CHECK(j["figures"]["flop_at_least"] == 200);
  CHECK(j["figures"]["unmeasured_launches"] == 2);
  for (const auto& precision : j["precisions"]) CHECK(precision.contains("flop_at_least"));
  for (const auto& k : j["kernels"]) {
    if (k["kernel"] == "never") {
      CHECK(k["flop"].is_null());
      CHECK_FALSE(k.contains("flop_at_least"));
      CHECK(k["unmeasured_launches"] == 2);
    } else {
      CHECK(k["flop"] == 200);
    }
  }
  CHECK(text_of(r).find("not measured") != std::string::npos);
}

TEST_CASE("a group that is not required is not waited for, a required one is") {
  TraceBuilder t = started();
  t.group(2, "extra", {"dram__bytes_read.sum"}, false);
  t.group(3, "needed", {"sm__cycles_elapsed.max"}, true);
  t.kernel(1, "k", 11);
  t.samples(1, 1, {sass(1, 0, 0), sass(1, 0, 0), sass(1, 0, 0)});
  t.launches({{1}, {1}, {1}, {1}});
  t.end();
  CHECK(reduce_bytes({t.bytes()}).ledger.total == LedgerLine{4, 0, 0, 4, 0});

  TraceBuilder u = started();
  u.group(2, "extra", {"dram__bytes_read.sum"}, false);
  u.group(3, "needed", {"sm__cycles_elapsed.max"}, true);
  u.kernel(1, "k", 11);
  u.samples(1, 1, {sass(1, 0, 0), sass(1, 0, 0), sass(1, 0, 0)});
  u.samples(3, 1, {{100}, {200}});
  u.launches({{1}, {1}, {1}, {1}});
  u.end();
  const Report r = reduce_bytes({u.bytes()});
  CHECK(r.ledger.total == LedgerLine{4, 2, 2, 0, 0});  // the group with fewest samples decides
  CHECK(to_decimal(r.total.flop) == "4");
}

TEST_CASE("launches without any counters are counted, timed and not measured") {
  TraceBuilder t;
  t.header();
  t.device();
  t.stream();
  t.kernel(1, "k", 11);
  t.launches({{1, 100}, {1, 300}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.ledger.unmeasured.at(0).reason == "no_counters");
  CHECK_FALSE(r.total.flop_known());
  CHECK(r.total.time.ns == u128{400});
}

TEST_CASE("tensor instructions without a tensor count are not measured") {
  const std::string hmma = "sm__inst_executed_pipe_tensor_op_hmma.sum";
  const std::string bf16 = "sm__ops_path_tensor_src_bf16_dst_fp32.sum";
  for (const bool sampled : {false, true}) {
    TraceBuilder t = started();
    t.group(2, "screening", {hmma}, true);
    t.group(3, "tensor", {bf16}, false);
    t.kernel(1, "gemm", 11);
    t.samples(1, 1, {sass(8, 0, 0)});
    t.samples(2, 1, {{64}});
    if (sampled) t.samples(3, 1, {{4096}});
    t.launches({{1}, {1}});
    t.end();
    const Report r = reduce_bytes({t.bytes()});
    CHECK(r.total.unmeasured == (sampled ? 0 : 2));
    if (sampled) {
      const auto j = json_of(r);
      CHECK(precisions_of(j) == nlohmann::json{{"fp32", 16}, {"tensor_bf16", 8192}});
      const auto one = json_of(reduce_bytes({t.bytes()}, {.fma = 1, .rules = {}}));
      CHECK(precisions_of(one)["tensor_bf16"] == 4096);
    } else {
      CHECK(r.ledger.unmeasured.at(0).reason == "tensor_not_sampled");
    }
  }
}

TEST_CASE("GPU time: windowed and untimed launches stand with the mean of the others") {
  TraceBuilder t = started();
  t.kernel(1, "a", 11);
  t.kernel(2, "only_windowed", 12);
  t.kernel(3, "never_timed", 13);
  t.launches({{1, 100}, {1, 300}, {1, 9000, 0, true}, {1}, {2, 500, 0, true}, {2}, {3}});
  t.tally({{1, 0, 1, 500}});  // the time of a launch counted before
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const auto kernel = [&](const std::string& name) {
    for (const WorkGroup& of : group(r, {by::kKernel}))
      if (r.kernels[of.ids[0]].name == name) return of;
    FAIL("no kernel " << name);
    return WorkGroup();
  };
  // 100 + 300 + 500 timed; the windowed launch stands with their mean, 300.
  CHECK(kernel("a").work.time.ns == u128{1200});
  CHECK(kernel("a").work.time.estimated == 1);
  CHECK(kernel("only_windowed").work.time.ns == u128{1000});
  CHECK(kernel("only_windowed").work.time.windowed == 2);
  CHECK_FALSE(kernel("never_timed").work.time_known());
  const auto j = json_of(r);
  for (const auto& k : j["kernels"])
    if (k["kernel"] == "never_timed") CHECK(k["gpu_time_ns"].is_null());
}

TEST_CASE("the ledger balances with drops and duplicates, and disagreement is said") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.samples(1, 1, {sass(1, 0, 0)});
  t.launches({{1}, {1}, {1}});
  t.ledger(5, 3, 2, 1, 15);
  t.end();
  Report r = reduce_bytes({t.bytes()});
  CHECK(r.ledger.total == LedgerLine{5, 1, 2, 0, 2});
  CHECK(r.ledger.duplicates_removed == 15);
  CHECK(r.ledger.disagreements.empty());
  CHECK_FALSE(r.partial);

  TraceBuilder u = started();
  u.kernel(1, "k", 11);
  u.samples(1, 1, {sass(1, 0, 0)});
  u.launches({{1}, {1}, {1}});
  u.ledger(6, 4, 1);  // 6 made, 5 accounted for, 3 readable
  u.end();
  r = reduce_bytes({u.bytes()});
  CHECK(balances(r));
  CHECK(r.ledger.total.dropped == 2);  // one by the recorder, one lost here
  CHECK(r.ledger.disagreements.size() == 2);
  CHECK(r.partial);
}

TEST_CASE("a hundred signatures that a merged class counts for are one row, with all launches") {
  TraceBuilder t = started();
  t.kernel(1, "m", 11, flopinj::trace::Interned::PARAMETERS_MERGED);
  t.samples(1, 1, {sass(0, 0, 64)});
  std::vector<TraceBuilder::Tally> rows = {{1, 1}};
  for (uint32_t k = 2; k <= 101; ++k) {
    t.kernel(k, "m", 100 + k);
    rows.push_back({k, k});
  }
  t.tally(rows);
  t.ledger(5151, 5151, 0);  // 1 + 2 + ... + 101
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.total.launches == 5151);
  CHECK(r.total.unmeasured == 0);
  CHECK(to_decimal(r.total.flop) == "659328");  // of 64 multiply-adds each
  CHECK(r.signatures.size() == 1);
  CHECK(r.ledger.disagreements.empty());
}

TEST_CASE("merged and unknown parameters are flagged") {
  TraceBuilder t = started();
  t.kernel(1, "m", 11, flopinj::trace::Interned::PARAMETERS_MERGED);
  t.kernel(2, "u", 12, flopinj::trace::Interned::PARAMETERS_UNKNOWN);
  t.samples(1, 1, {sass(1, 0, 0)});
  t.samples(1, 2, {sass(2, 0, 0)});
  t.launches({{1}, {2}, {2}});
  t.end();
  const auto j = json_of(reduce_bytes({t.bytes()}));
  for (const auto& k : j["kernels"]) {
    if (k["kernel"] == "m") CHECK(k["merged_parameter_launches"] == 1);
    if (k["kernel"] == "u") CHECK(k["unknown_parameter_launches"] == 2);
  }
}

TEST_CASE("totals beyond 64 bits survive") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.samples(1, 1, {sass(0, 0, 4503599627370496.0)});  // 2^52
  t.tally({{1, 1ULL << 60, 0, 0}});
  t.end();
  // 2 * 2^52 * 2^60 = 2^113
  const auto total = json_of(reduce_bytes({t.bytes()}))["figures"];
  CHECK(total["flop_exact"] == "10384593717069655257060992658440192");
  CHECK(total["flop"] == 0x1p113);
}

TEST_CASE("what a lost header would say is null in every form, never 0") {
  TraceBuilder t;
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "kernel", 11);
  t.launches({{1, 10}});
  t.end();
  const auto process = json_of(reduce_bytes({t.bytes()}))["processes"][0];
  for (const char* key : {"pid", "rank", "simulated", "cupti_version", "driver_version"}) {
    INFO(key);
    CHECK(process[key].is_null());
  }
}

TEST_CASE("integers that JSON's numbers cannot hold are texts, to the last digit") {
  // 2^53 is the last integer below which a double holds every one.
  const auto json = [](uint64_t begin_ns) {
    TraceBuilder t = started();
    t.kernel(1, "kernel", 11);
    t.launches({{1, 10}}, 1, 1, begin_ns);
    t.end();
    return json_of(reduce_bytes({t.bytes()}))["device_time"][0]["begin_ns"];
  };
  CHECK(json(9'007'199'254'740'992) == 9'007'199'254'740'992);
  CHECK(json(9'007'199'254'740'993) == "9007199254740993");
  CHECK(json(1'800'000'000'000'000'001) == "1800000000000000001");
}
