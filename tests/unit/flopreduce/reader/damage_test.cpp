// Damaged traces: no crash, nothing invented, and the damage is said.
#include <random>

#include "catch.h"
#include "reduce_bytes.h"
#include "support/effort.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

std::string small_trace() {
  TraceBuilder t = started();
  t.kernel(1, "gemm", 11);
  t.kernel(2, "relu", 12);
  t.path(1, 0, "forward");
  t.path(2, 1, "layer1");
  t.samples(1, 1, {sass(0, 0, 100)});
  t.samples(1, 2, {sass(7, 0, 0)});
  t.launches({{1, 500, 2}, {2, 60, 2}, {1, 510, 2}, {2, 61}});
  t.tally({{1, 10, 10, 5000, 1}});
  t.ledger(14, 14, 0);
  t.overhead(100, 10000);
  t.end();
  return t.bytes();
}
constexpr unsigned kFlop = 12 * 200 + 2 * 7;

void check_sane(const Report& r) {
  CHECK(r.total.flop <= u128{kFlop});
  CHECK(r.total.launches <= 14);
  CHECK(r.ledger.total.launches <= 14);
  CHECK(balances(r));
  CHECK_FALSE(text_of(r).empty());
  CHECK(nlohmann::json::accept(json_text_of(r)));
}

}  // namespace

TEST_CASE("the undamaged trace is complete") {
  const Report r = reduce_bytes({small_trace()});
  CHECK_FALSE(r.partial);
  CHECK(r.damage.empty());
  CHECK(r.total.flop == u128{kFlop});
  CHECK(r.total.launches == 14);
}

TEST_CASE("every byte changed once: partial, never more than was there") {
  const std::string good = small_trace();
  const std::vector<int> changes = effort<std::vector<int>>({0x01, 0x80, 0xFF}, {0x01});
  for (size_t i = 0; i < good.size(); i += effort<size_t>(1, 3)) {
    for (const int change : changes) {
      std::string bad = good;
      bad[i] = static_cast<char>(static_cast<uint8_t>(bad[i]) ^ change);
      const Report r = reduce_bytes({bad});
      INFO("byte " << i << " ^ " << change);
      check_sane(r);
      CHECK(r.partial);
      CHECK((damage_of(r, Damage::kBadFrame) == 1) != (damage_of(r, Damage::kTornTail) > 0));
    }
  }
}

TEST_CASE("every length of a torn trace: all whole packets are used") {
  const std::string good = small_trace();
  uint64_t launches = 0;
  for (size_t n = 1; n < good.size(); n += effort<size_t>(1, 3)) {
    const Report r = reduce_bytes({good.substr(0, n)});
    if (r.traces.empty()) continue;  // shorter than the first packet: not a trace
    INFO("length " << n);
    check_sane(r);
    CHECK(r.total.launches >= launches);
    launches = r.total.launches;
    CHECK(damage_of(r, Damage::kNoEnd) == 1);
    // Between two packets it is as if the program had been ended there.
    CHECK(r.partial == (damage_of(r, Damage::kTornTail) > 0));
  }
  CHECK(launches == 14);
}

TEST_CASE("every packet cut out leaves a gap in the sequence") {
  const std::string good = small_trace();
  std::vector<size_t> starts;
  for (size_t at = 0; at < good.size();) {
    starts.push_back(at);
    size_t size = 0;
    unsigned shift = 0;
    for (++at;; ++at, shift += 7) {
      size |= static_cast<size_t>(good[at] & 0x7F) << shift;
      if ((good[at] & 0x80) == 0) break;
    }
    at += 1 + size;
  }
  starts.push_back(good.size());
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    const Report r = reduce_bytes({good.substr(0, starts[i]) + good.substr(starts[i + 1])});
    INFO("packet " << i + 1);
    check_sane(r);
    CHECK(r.partial == (i + 2 < starts.size()));  // without its end mark it is whole
    CHECK(damage_of(r, Damage::kLostPackets) == (i + 2 == starts.size() ? 0 : 1));
  }
}

TEST_CASE("bytes thrown in between packets are passed over and counted") {
  const std::string good = small_trace();
  std::mt19937 random(1);
  std::string noise;
  for (int i = 0; i < 100'000; ++i) noise.push_back(static_cast<char>(random()));
  const Report r = reduce_bytes({good + noise + small_trace()});
  CHECK(damage_of(r, Damage::kSkippedBytes) == noise.size());
  CHECK(r.total.flop == u128{kFlop});
  const Report front = reduce_bytes({noise + good});
  CHECK(damage_of(front, Damage::kSkippedBytes) == noise.size());
  CHECK(front.total.flop == u128{kFlop});
}

TEST_CASE("data made to look like packets everywhere ends in time") {
  // Each 0x0a starts a frame of two megabytes that ends in a check sum tag: the search must not try
  // them all.
  std::string bytes = small_trace();
  for (int i = 0; i < 2'000'000; ++i) bytes += std::string("\x0a\x80\x80\x7d", 4);
  const Report r = reduce_bytes({bytes});
  CHECK(r.total.flop == u128{kFlop});
  CHECK(damage_of(r, Damage::kGaveUp) > 0);
}

TEST_CASE("files that are no traces are named as what they are") {
  const auto error = [](const std::string& bytes) {
    Reducer reducer{ReduceOptions{}};
    reducer.add(Input::from_memory("f", bytes.data(), bytes.size()));
    CHECK_FALSE(reducer.any_input());
    return reducer.errors().at(0).message;
  };
  CHECK(error("{\"traceEvents\": []}").find("JSON") != std::string::npos);
  CHECK(error(std::string("\x1f\x8b\x08\x00", 4)).find("compressed") != std::string::npos);
  CHECK(error(std::string(1 << 20, 'x')).find("is no trace") != std::string::npos);
  TraceBuilder newer;
  newer.header(1, false, 2);
  CHECK(error(newer.bytes()).find("format version 2") != std::string::npos);
}
