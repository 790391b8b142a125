// Summaries: whatever way recordings are grouped, ordered and repeated, the report is the same.
#include <algorithm>
#include <numeric>

#include "catch.h"
#include "reduce_bytes.h"
#include "sequences.h"
#include "support/effort.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// A recording with what reports are made of; other numbers for each session.
std::string recording(uint64_t session, bool tallied) {
  Random random(session);
  const auto some = [&](uint64_t most) {
    return static_cast<uint64_t>(random.uniform() * static_cast<double>(most)) + 1;
  };
  TraceBuilder t;
  t.header(session, false, 1, static_cast<uint32_t>(1000 - session));
  t.device(1, session % 3 == 0 ? "GA100" : "GH100");
  t.thread(1, session % 2 == 0 ? "main" : "pt_autograd_0");
  t.stream();
  t.group(1, "sass", sass_metrics());
  for (uint32_t k = 1; k <= 4; ++k) t.kernel(k, "kernel" + std::to_string(k), 50 + k);
  t.kernel(5, "only" + std::to_string(session), 90 + session,
           flopinj::trace::Interned::PARAMETERS_MERGED);
  t.path(1, 0, "step");
  t.path(2, 1, session % 2 == 0 ? "forward" : "backward");
  t.path(3, 2, "layer" + std::to_string(session % 4));
  if (session % 2 == 0)
    for (uint32_t k = 1; k <= 3; ++k)
      for (uint32_t w = 1; w <= 5; ++w)
        t.placed_sample(1, k, w, (w - 1) * 10,
                        sass(static_cast<double>(k == 3 ? some(100) : 8), 0, 1e9));
  uint64_t launches = 0;
  if (tallied) {
    std::vector<TraceBuilder::Tally> rows;
    for (uint32_t k = 1; k <= 5; ++k) {
      const uint64_t n = some(1ULL << 60);
      rows.push_back({k, n, n / 2, n / 4, k % 3 + 1, k == 4});
      launches += n / 8;
    }
    t.tally(rows);
    t.tally(rows);
  } else {
    std::vector<TraceBuilder::Launch> list;
    for (uint64_t n = some(3000); launches < n; ++launches)
      list.push_back({static_cast<uint32_t>(some(5)), static_cast<int64_t>(some(5000)),
                      static_cast<uint32_t>(some(3)), some(7) == 1, some(5) == 1});
    t.launches(list);
    for (uint64_t n = 1; n < launches; n = 3 * n / 2 + 1) t.ledger(n, n, 0);
    t.launches(list);
    t.ledger(2 * launches, 2 * launches, 0);
  }
  t.overhead(some(1000), some(100'000));
  t.diagnostic("some.code", "of " + std::to_string(session));
  if (session % 5 != 0) t.end();
  return t.bytes();
}

std::string report_of(const std::vector<Named>& inputs) {
  ReduceOptions options;
  options.launch_times = true;
  Reducer reducer(options);
  for (const auto& i : inputs)
    reducer.add(Input::from_memory(i.name, i.bytes.data(), i.bytes.size()));
  return timeless_json_of(reducer.run()).dump(1);
}

template <class T>
void shuffle(std::vector<T>& list, Random& random) {
  for (size_t i = list.size(); i > 1; --i)
    std::swap(list[i - 1], list[static_cast<size_t>(random.uniform() * static_cast<double>(i))]);
}

}  // namespace

TEST_CASE("the report of merged partials is the report of all traces, byte for byte") {
  std::vector<Named> traces;
  for (uint64_t session = 1; session <= 9; ++session)
    traces.push_back({"rank" + std::to_string(session) + ".pb", recording(session, session > 6)});
  traces[3].bytes[traces[3].bytes.size() / 2] ^= 0x20;  // damaged
  traces[5].bytes.resize(traces[5].bytes.size() - 30);  // torn
  const std::string expected = report_of(traces);
  const std::string whole = merge_bytes(traces).bytes;
  CHECK(report_of({{"all.sum", whole}}) == expected);
  for (uint64_t seed = 1; seed <= effort<uint64_t>(20, 3); ++seed) {
    Random random(seed);
    std::vector<Named> parts = traces;
    shuffle(parts, random);
    CHECK(report_of(parts) == expected);
    // Joined in random groups until one is left, some of them twice.
    while (parts.size() > 1) {
      const auto take =
          std::min<size_t>(parts.size(), 2 + static_cast<size_t>(random.uniform() * 3));
      std::vector<Named> group(parts.end() - static_cast<std::ptrdiff_t>(take), parts.end());
      parts.resize(parts.size() - take);
      if (random.uniform() < 0.3) group.push_back(group.front());
      parts.push_back({"part.sum", merge_bytes(group).bytes});
      shuffle(parts, random);
    }
    CHECK(parts[0].bytes == whole);
    CHECK(merge_bytes(parts).bytes == whole);
  }
}

TEST_CASE("a summary holds recordings once, and says how many") {
  const Named a{"a.pb", recording(1, false)};
  const Named b{"b.pb", recording(2, false)};
  CHECK(merge_bytes({a, b, a}).recordings == 2);
  CHECK(merge_bytes({a, b}).bytes.size() < a.bytes.size() + b.bytes.size());
}

TEST_CASE("a trace beside its own summary counts once") {
  const Named a{"a.pb", recording(2, false)};
  const Named summary{"a.sum", merge_bytes({a}).bytes};
  const Report both = [&] {
    Reducer reducer(ReduceOptions{});
    for (const auto* i : {&a, &summary})
      reducer.add(Input::from_memory(i->name, i->bytes.data(), i->bytes.size()));
    return reducer.run();
  }();
  CHECK(both.traces.size() == 1);
  CHECK(both.total.launches == reduce_bytes({a.bytes}).total.launches);
  CHECK(damage_of(both, Damage::kRepeatedPackets) > 0);
}
