#include "tables/id_map.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "catch.h"
#include "reader/pattern_table.h"
#include "tables/flop_series.h"
#include "tables/samples.h"

using namespace flopinj::reduce;

TEST_CASE("ids: each has its index, with gaps between them, and what cannot be is refused") {
  IdMap ids;
  CHECK(ids.size() == 0);
  CHECK(ids.get(0) == kNoIndex);
  CHECK(ids.get(1) == kNoIndex);
  CHECK(!ids.set(0, 1));
  CHECK(!ids.set(IdMap::kMaxGap + 1, 1));
  std::map<uint32_t, uint32_t> expected;
  std::mt19937_64 random(1);
  for (uint32_t i = 0; i < 2000; ++i) {
    const uint32_t highest = expected.empty() ? 0 : expected.rbegin()->first;
    const uint32_t id = 1 + static_cast<uint32_t>(random() % (highest + IdMap::kMaxGap));
    REQUIRE(ids.set(id, i) == (id <= IdMap::kMaxId));
    if (id <= IdMap::kMaxId) expected[id] = i;
    REQUIRE(ids.size() == expected.rbegin()->first);
  }
  for (uint32_t id = 0; id <= ids.size() + 70; ++id) {
    const auto found = expected.find(id);
    REQUIRE(ids.get(id) == (found != expected.end() ? found->second : kNoIndex));
  }
  while (ids.size() < IdMap::kMaxId)
    REQUIRE(ids.set(std::min(IdMap::kMaxId, ids.size() + IdMap::kMaxGap), 5));
  CHECK(ids.get(IdMap::kMaxId) == 5);
  CHECK(!ids.set(IdMap::kMaxId + 1, 5));
  CHECK(ids.get(UINT32_MAX) == kNoIndex);
  IdMap moved = std::move(ids);
  CHECK(moved.get(IdMap::kMaxId) == 5);
}

TEST_CASE("ids: maps that share memory are as they were, and change by themselves") {
  std::mt19937_64 random(3);
  IdMap first, second;
  std::map<uint32_t, uint32_t> of_first, of_second;
  for (uint32_t i = 0; i < 600; ++i) {
    const uint32_t id = 1 + static_cast<uint32_t>(random() % 900);
    REQUIRE(first.set(id, i));
    of_first[id] = i;
    const uint32_t other = id % 100 == 7 ? i + 1 : i;  // some differ
    REQUIRE(second.set(id, other));
    of_second[id] = other;
  }
  second.share_with(first);
  const auto check = [](const IdMap& ids, const std::map<uint32_t, uint32_t>& expected) {
    for (uint32_t id = 0; id < 1000; ++id) {
      const auto found = expected.find(id);
      REQUIRE(ids.get(id) == (found != expected.end() ? found->second : kNoIndex));
    }
  };
  check(first, of_first);
  check(second, of_second);
  for (uint32_t id = 3; id < 900; id += 50) {
    REQUIRE(second.set(id, 5));
    of_second[id] = 5;
    REQUIRE(first.set(id + 1, 6));
    of_first[id + 1] = 6;
  }
  check(first, of_first);
  check(second, of_second);
}

TEST_CASE("patterns: tables that share memory are as they were, and change by themselves") {
  using Row = PatternTable::Row;
  PatternTable first, second;
  for (uint32_t row = 1; row <= 100; ++row)
    for (PatternTable* table : {&first, &second})
      REQUIRE(table->set(row, {row, 2 * row, 1, row % 2 == 0}));
  second.share_with(first);
  CHECK(second.get(40) == Row{40, 80, 1, true});
  REQUIRE(second.set(40, {1, 2, 3, false}));
  CHECK(first.get(40) == Row{40, 80, 1, true});
  CHECK(second.get(40) == Row{1, 2, 3, false});
  CHECK(second.get(41) == Row{41, 82, 1, false});
  second.share_with(first);  // they differ
  CHECK(second.get(40) == Row{1, 2, 3, false});
  CHECK(second.rows(99, 5).size() == 2);
  CHECK(PatternTable().rows(1, 5).empty());
}

// Against lists that are kept as they are.
TEST_CASE("samples by device: packed ones are as they were, in the order of signatures") {
  std::mt19937_64 random(5);
  DeviceSamples samples;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<GroupSamples>> expected;  // by device
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counted;                    // metrics
  const std::vector<uint32_t> metrics{7, 8, 9};
  const auto read = [&](uint32_t device, int many) {
    for (int i = 0; i < many; ++i) {
      const auto signature = static_cast<uint32_t>(random() % 6);
      const bool varies = signature == 3, of_graph = random() % 5 == 0;
      const double value = 100.0 * signature + (varies ? static_cast<double>(random() % 9) : 0);
      const std::vector<double> values{value, 2 * value, 0};
      const auto window = static_cast<uint32_t>(i / 3);
      SampleSet* set = samples.at(signature, device);
      REQUIRE(set != nullptr);
      set->metric(7).add(value);
      ++counted[{device, signature}];
      SampleSet own;
      own.groups = std::move(expected[{device, signature}]);
      for (SampleSet* to : {set, &own}) {
        GroupSamples& group = to->group(signature % 2 + 1);
        ++group.n;
        group.of_graphs += of_graph ? 1 : 0;
        group.metrics = metrics;
        (of_graph ? group.graph_clusters : group.clusters)
            .add(window, static_cast<uint64_t>(4 * i), values);
      }
      expected[{device, signature}] = std::move(own.groups);
    }
  };
  const auto pack = [&] {
    std::pair<uint32_t, uint32_t> before{0, 0};
    samples.pack([&](uint32_t signature, uint32_t device, const SampleSet& set) {
      const std::pair at{device, signature};
      CHECK(at >= before);
      before = at;
      REQUIRE(set.metrics.size() == 1);
      CHECK(set.metrics[0].n == std::exchange(counted[at], 0));
    });
  };
  for (uint32_t device = 2; device < 40; device += 2) {
    read(device, 30);
    pack();
  }
  read(10, 20);  // a trace that comes again, and one between others
  read(11, 20);
  pack();
  const auto same = [](const ClusterList& a, const ClusterList& b) {
    if (a.size() != b.size() || a.samples() != b.samples() || a.uniform() != b.uniform() ||
        a.width() != b.width() || a.cells(1000) != b.cells(1000))
      return false;
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t m = 0; m < a.width(); ++m)
        if (a.sum(i, m) != b.sum(i, m)) return false;
    return true;
  };
  size_t seen = 0;
  std::pair<uint32_t, uint32_t> before{0, 0};
  samples.end();
  DeviceSamples::Reader reader(samples);
  samples.for_each([&](uint32_t signature, uint32_t device, const std::vector<GroupSamples>& of) {
    const std::pair at{device, signature};
    CHECK(std::pair(signature, device) >= before);
    before = {signature, device};
    ++seen;
    const auto& wanted = expected.at(at);
    REQUIRE(of.size() == wanted.size());
    CHECK(reader.groups(signature, device - device % 2).size() <= of.size());
    CHECK(reader.groups(signature, device).size() == of.size());
    for (size_t i = 0; i < of.size(); ++i) {
      CHECK(of[i].group == wanted[i].group);
      CHECK(of[i].n == wanted[i].n);
      CHECK(of[i].of_graphs == wanted[i].of_graphs);
      CHECK(of[i].metrics == metrics);
      CHECK(same(of[i].clusters, wanted[i].clusters));
      CHECK(same(of[i].graph_clusters, wanted[i].graph_clusters));
    }
  });
  CHECK(seen == expected.size());
  CHECK(reader.groups(9, 10).empty());
  CHECK(samples.any_of(11));
  CHECK_FALSE(samples.any_of(13));
}

TEST_CASE("FLOP over time: devices share bins where they are very many") {
  CHECK(FlopSeries::most_bins(1) == 1024);
  CHECK(FlopSeries::most_bins(128) == 1024);
  CHECK(FlopSeries::most_bins(129) == 512);
  CHECK(FlopSeries::most_bins(1000) == 128);
  CHECK(FlopSeries::most_bins(1'000'000) == 32);
  FlopSeries few(64), many;
  for (uint64_t i = 0; i < 5000; ++i)
    for (FlopSeries* series : {&few, &many}) series->add(i * 2000, i * 2000 + 900, 3);
  few.finish();
  many.finish();
  CHECK(few.bins().size() <= 64);
  CHECK(few.bins().size() > 16);
  u128 of_few = 0, of_many = 0;
  for (const u128 bin : few.bins()) of_few += bin;
  for (const u128 bin : many.bins()) of_many += bin;
  CHECK(of_few == of_many);
}
