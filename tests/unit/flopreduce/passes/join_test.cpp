// Several traces: samples of one process serve the launches of another.
#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// Rank 0 measures; ids differ from the other rank's on purpose.
std::string measuring(const std::string& chip = "GH100", uint64_t hash = 77) {
  TraceBuilder t = started(1, chip);
  t.kernel(5, "gemm", hash);
  t.samples(1, 5, {sass(0, 0, 32), sass(0, 0, 32)});
  t.launches({{5}, {5}, {5}});
  t.ledger(3, 3, 0);
  t.end();
  return t.bytes();
}

std::string counting(const std::string& chip = "GH100", uint64_t hash = 77,
                     const std::string& name = "gemm") {
  TraceBuilder t;
  t.header(2, false, 1, 102);
  t.device(1, chip);
  t.stream(9);
  t.kernel(1, name, hash);
  t.launches({{1}, {1}, {1}, {1}}, 0, 9);
  t.ledger(4, 4, 0);
  t.end();
  return t.bytes();
}

}  // namespace

TEST_CASE("samples are joined by stable hash, in either order of the files") {
  for (const auto& traces :
       {std::vector{measuring(), counting()}, std::vector{counting(), measuring()}}) {
    const Report r = reduce_bytes(traces);
    CHECK(to_decimal(r.total.flop) == "448");  // 7 launches of 64
    CHECK(r.ledger.total == LedgerLine{7, 2, 5, 0, 0});
    REQUIRE(r.traces.size() == 2);
    u128 sum = 0;
    for (const auto& t : r.traces) sum += t.work.flop;
    CHECK(sum == r.total.flop);
    CHECK(r.kernels.size() == 1);
    CHECK(r.devices.size() == 2);
    CHECK_FALSE(r.partial);
  }
}

TEST_CASE("another chip, hash or name is not joined") {
  for (const auto& other : {counting("GA100"), counting("GH100", 78),
                            counting("GH100", 77, "gemm2"), counting("GH100", 0)}) {
    const Report r = reduce_bytes({measuring(), other});
    CHECK(r.ledger.total == LedgerLine{7, 2, 1, 4, 0});
    CHECK(to_decimal(r.total.flop) == "192");
  }
}

TEST_CASE("signatures without a stable hash stay in their trace") {
  const Report r = reduce_bytes({measuring("GH100", 0), counting("GH100", 0)});
  CHECK(r.ledger.total.unmeasured == 4);
}

TEST_CASE("a file given twice is counted once") {
  const Report r = reduce_bytes({measuring(), measuring()});
  CHECK(r.ledger.total.launches == 3);
  CHECK(r.traces.size() == 1);
  CHECK(damage_of(r, Damage::kRepeatedPackets) > 0);
  CHECK_FALSE(r.partial);
}

TEST_CASE("concatenated traces of two processes are two traces") {
  const Report r = reduce_bytes({measuring() + counting()});
  CHECK(r.traces.size() == 2);
  CHECK(to_decimal(r.total.flop) == "448");
  CHECK_FALSE(r.partial);
}

TEST_CASE("parts of one trace are put in order") {
  const std::string whole = measuring();
  TraceBuilder probe = started(1);
  const size_t first_part = probe.bytes().size();
  const Report r = reduce_bytes({whole.substr(0, first_part) + whole.substr(first_part)});
  CHECK(to_decimal(r.total.flop) == "192");

  TraceBuilder a = started(7);
  a.kernel(1, "k", 5);
  a.samples(1, 1, {sass(1, 0, 0)});
  a.launches({{1}});
  const size_t cut = a.bytes().size();
  a.header(7);
  a.launches({{1}, {1}});
  a.end();
  const std::string part1 = a.bytes().substr(0, cut);
  const std::string part2 = a.bytes().substr(cut);
  const Report parts = reduce_bytes({part2, part1});
  CHECK(parts.traces.size() == 1);
  CHECK(parts.total.launches == 3);
  CHECK(to_decimal(parts.total.flop) == "3");
  CHECK_FALSE(parts.partial);
}

TEST_CASE("a simulated trace has no place beside a real one") {
  TraceBuilder t = started(3, "GH100", true);
  t.end();
  const Report alone = reduce_bytes({t.bytes()});
  CHECK(alone.simulated == true);
  CHECK(text_of(alone).find("SIMULATED") != std::string::npos);
  const Report r = reduce_bytes({measuring(), t.bytes()});
  CHECK(r.simulated == false);
  CHECK(r.traces.size() == 1);
  REQUIRE(r.errors.size() == 1);
  CHECK(r.errors[0].find("simulated GPU") != std::string::npos);
}
