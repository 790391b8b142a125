// JSON of random traces: every total is the sum of its rows, to the last digit, past 2^53 and 2^64.
#include <array>
#include <map>
#include <set>
#include <string>

#include "catch.h"
#include "reduce_bytes.h"
#include "sequences.h"
#include "support/effort.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

u128 number(const nlohmann::json& j) {
  u128 value = 0;
  for (const char c : j.get<std::string>()) value = value * 10 + static_cast<unsigned>(c - '0');
  return value;
}

// Sum of a member over rows. Rows where nothing is measured have null.
u128 sum(const nlohmann::json& rows, const char* member) {
  u128 all = 0;
  for (const auto& row : rows) {
    if (!row.contains(member) || row[member].is_null()) continue;
    all += row[member].is_string() ? number(row[member]) : row[member].get<uint64_t>();
  }
  return all;
}

u128 flop_of(const nlohmann::json& rows) {
  return sum(rows, "flop_exact") + sum(rows, "flop_at_least_exact");
}

u128 time_of(const nlohmann::json& rows) {
  return sum(rows, "gpu_time_ns") + sum(rows, "gpu_time_ns_at_least") +
         sum(rows, "gpu_time_ns_at_most");
}

std::string random_trace(uint64_t session, Random& random) {
  const auto some = [&](double most) { return static_cast<uint64_t>(random.uniform() * most); };
  TraceBuilder t = started(session, random.uniform() < 0.5 ? "GH100" : "GA100");
  const auto kernels = static_cast<uint32_t>(some(6) + 1);
  const char* const names[] = {"forward", "backward", "optimizer", "loss", "x", "y"};
  for (uint32_t p = 1; p <= 6; ++p) t.path(p, static_cast<uint32_t>(some(p)), names[some(6)]);
  for (uint32_t k = 1; k <= kernels; ++k) {
    t.kernel(k, "k" + std::to_string(some(5)), some(4) + 1,
             random.uniform() < 0.3 ? flopinj::trace::Interned::PARAMETERS_MERGED
                                    : flopinj::trace::Interned::PARAMETERS_EXACT);
    const uint64_t base = some(9e15);
    for (uint32_t w = 0, windows = static_cast<uint32_t>(some(6)); w < windows; ++w)
      t.placed_sample(1, k, w + 1, 7ULL * w,
                      sass(static_cast<double>(base), static_cast<double>(some(1e6)),
                           static_cast<double>(random.uniform() < 0.5 ? base : some(9e15))));
  }
  std::vector<TraceBuilder::Tally> rows;
  uint64_t launches = 0;
  for (int i = 0; i < 12; ++i) {
    const uint64_t n = some(1e9);
    launches += n;
    rows.push_back({static_cast<uint32_t>(some(kernels)) + 1, n, n / 3, n,
                    static_cast<uint32_t>(some(7)), random.uniform() < 0.2});
  }
  t.tally(rows);
  t.ledger(launches, launches, 0);
  t.end();
  return t.bytes();
}

}  // namespace

TEST_CASE("JSON totals are the sums of their rows, exactly") {
  u128 largest = 0;
  for (uint64_t seed = 1; seed <= effort<uint64_t>(60, 12); ++seed) {
    Random random(seed);
    std::vector<std::string> traces;
    for (uint64_t i = 0; i <= seed % 4; ++i) traces.push_back(random_trace(i + 1, random));
    const auto j = json_of(reduce_bytes(traces));
    INFO("seed " << seed);
    const auto& figures = j["figures"];
    const u128 total = flop_of(nlohmann::json::array({figures}));
    largest = std::max(largest, total);
    for (const char* rows : {"kernels", "signatures", "phases", "rules", "processes",
                             "ranges_exclusive", "precisions"}) {
      INFO(rows);
      CHECK(flop_of(j[rows]) == total);
      if (std::string(rows) == "precisions") continue;
      CHECK(sum(j[rows], "launches") == figures["launches"].get<uint64_t>());
      if (std::string(rows) != "processes")
        CHECK(time_of(j[rows]) == time_of(nlohmann::json::array({figures})));
    }
    CHECK(sum(j["devices"], "launches") == j["ledger"].back()["launches"].get<uint64_t>());
    // Metrics times weights are the signatures' FLOP. Two that differ in how much is known of their
    // parameters only look alike there.
    const auto key = [](const nlohmann::json& row) {
      return std::array<std::string, 3>{row["kernel"], row["stable_hash"], row["chip"]};
    };
    std::map<std::array<std::string, 3>, u128> by_metrics, by_signatures;
    std::set<std::array<std::string, 3>> unmeasured;
    for (const auto& sample : j["samples"])
      if (!sample["flop_exact"].is_null()) by_metrics[key(sample)] += number(sample["flop_exact"]);
    for (const auto& s : j["signatures"])
      if (s["unmeasured_launches"] == 0)
        by_signatures[key(s)] += number(s["flop_exact"]);
      else
        unmeasured.insert(key(s));
    for (const auto& [of, flop] : by_signatures)
      if (!unmeasured.contains(of)) CHECK(by_metrics[of] == flop);
  }
  CHECK(largest > (u128{1} << 64));
}
