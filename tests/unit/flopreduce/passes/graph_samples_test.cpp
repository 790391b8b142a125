// Samples that were read in windows around graph launches: what the ledger says of them, and which
// launches they stand for.
#include <cmath>

#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

void launches(TraceBuilder& t, size_t eager, size_t in_graphs) {
  std::vector<TraceBuilder::Launch> list(eager + in_graphs);
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].signature = 1;
    list[i].graph = i >= eager;
  }
  t.launches(list);
  t.ledger(list.size(), list.size(), 0);
  t.end();
}

}  // namespace

TEST_CASE("a kernel of graphs alone has its count from graph launches, and the ledger says so") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.graph_samples(1, 1, 1, 1, {sass(0, 0, 100), sass(0, 0, 100)});  // it is twice in the graph
  launches(t, 0, 50);
  const Report r = reduce_bytes({t.bytes()});
  CHECK_FALSE(r.partial);
  CHECK(to_decimal(r.total.flop) == "10000");
  CHECK(r.ledger.total == LedgerLine{50, 2, 48, 0, 0});
  CHECK(r.ledger.measured_in_graphs == 2);
  CHECK(r.ledger.extrapolated_in_graphs == 48);
  CHECK(r.ledger.counted_by_graphs == 50);
  REQUIRE(r.signatures.size() == 1);
  CHECK(r.signatures[0].samples == 2);
  CHECK(r.signatures[0].graph_samples == 2);
  CHECK(r.signatures[0].windows == 1);  // of one launch
  const std::string text = text_of(r);
  CHECK(text.find("measured: 2  in graphs") != std::string::npos);
  CHECK(text.find("counts from graph launches only: 50") != std::string::npos);
  const auto json = json_of(r);
  CHECK(json["ledger"].back()["counted_by_graphs"] == 50);
  CHECK(json["signatures"][0]["graph_samples"] == 2);
}

TEST_CASE("a kernel that was also measured outside of graphs is not counted by graphs alone") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.samples(1, 1, {sass(0, 0, 100)});
  t.graph_samples(1, 1, 2, 1, {sass(0, 0, 100)});
  launches(t, 10, 50);
  const Report r = reduce_bytes({t.bytes()});
  CHECK(to_decimal(r.total.flop) == "12000");
  CHECK(r.ledger.total == LedgerLine{60, 2, 58, 0, 0});
  CHECK(r.ledger.measured_in_graphs == 1);
  CHECK(r.ledger.extrapolated_in_graphs == 49);
  CHECK(r.ledger.counted_by_graphs == 0);
  CHECK(r.signatures.at(0).graph_samples == 1);
}

TEST_CASE("kernels that were read together have no time, and are no damage") {
  TraceBuilder t = started();
  t.group(2, "screening", {"dram__bytes_read.sum", "gpu__time_duration.sum"}, false);
  t.kernel(1, "k", 11);
  t.graph_samples(1, 1, 1, 4, {sass(0, 0, 100)});
  t.graph_samples(2, 1, 2, 4, {{2.5, std::nan("")}});
  launches(t, 0, 8);
  const Report r = reduce_bytes({t.bytes()});
  CHECK_FALSE(r.partial);
  CHECK(to_decimal(r.total.flop) == "1600");
  CHECK(r.ledger.total == LedgerLine{8, 1, 7, 0, 0});

  // Of a single kernel it would be damage.
  TraceBuilder broken = started();
  broken.kernel(1, "k", 11);
  broken.graph_samples(1, 1, 1, 1, {sass(0, 0, std::nan(""))});
  launches(broken, 0, 8);
  CHECK(damage_of(reduce_bytes({broken.bytes()}), Damage::kBadCounter) == 1);
}

TEST_CASE("where samples disagree, those of graphs stand for launches in graphs") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  for (uint32_t w = 0; w < 4; ++w) t.placed_sample(1, 1, w + 1, w * 25, sass(10, 0, 0));
  t.graph_samples(1, 1, 5, 1, {sass(20, 0, 0)});
  launches(t, 100, 300);
  const Report r = reduce_bytes({t.bytes()});
  CHECK(to_decimal(r.total.flop) == "7000");  // 100 of 10, 300 of 20
  CHECK(r.total.varying == 400);
  CHECK(r.total.uncertainty.elsewhere_launches() == 0);
}
