// Merger and columns against a model: what comes out, decoded by the proto's comments, is what went
// in.
#include <collector/trace/launch_columns.h>
#include <collector/trace/trace_writer.h>
#include <collector/writer/launch_merger.h>

#include <algorithm>
#include <map>
#include <random>

#include "catch.h"
#include "memory_sink.h"
#include "trace_reader.h"

using namespace flopinj;
using test::ReadLaunch;

namespace {

using Random = std::mt19937_64;
uint64_t below(Random& random, uint64_t n) { return random() % n; }

// Writes columns to memory and reads them back.
std::vector<ReadLaunch> round_trip(LaunchColumns& columns) {
  auto sink = std::make_unique<test::MemorySink>();
  std::string& bytes = sink->bytes;
  TraceWriter writer(std::move(sink));
  writer.launches(columns);
  REQUIRE(writer.flush());
  const auto trace = test::read_trace(bytes);
  REQUIRE(!trace.packets.empty());
  const auto& batch = trace.packets.back().launch_batch();
  REQUIRE(batch.thread() == columns.thread.value);
  REQUIRE(batch.stream() == columns.stream.value);
  return test::read_launches(batch, trace.patterns);
}

void require_same(const TimedLaunch& in, const ReadLaunch& out) {
  REQUIRE(out.signature == in.signature.value);
  REQUIRE(out.path == in.path.value);
  REQUIRE(out.sequence_plus_1 == in.sequence_plus_1);
  REQUIRE(out.graph == in.graph);
  REQUIRE(out.call == in.call);
  REQUIRE(out.windowed == in.windowed);
  REQUIRE(out.timed == in.timed());
  REQUIRE(out.start_ns == in.start_ns);
  REQUIRE(out.end_ns == in.end_ns);
  if (out.called_before_ns == UINT64_MAX) return;
  REQUIRE(in.called_ns != 0);
  const uint64_t before = in.start_ns - std::min(in.start_ns, in.called_ns);
  REQUIRE(out.called_before_ns == before - before % 128);
}

LaunchRecord record(uint32_t signature, uint32_t correlation) {
  LaunchRecord r;
  r.signature = SignatureId{signature};
  r.correlation = correlation;
  return r;
}

struct Released {
  LaunchMerger::Origin origin;
  TimedLaunch launch;
};
struct Outcome {
  std::vector<Released> launches;
  std::vector<TallyRow> late;
  void take(LaunchMerger& merger, uint32_t max_age, bool all = false) {
    merger.release(
        max_age, all,
        [&](const LaunchMerger::Origin& o, const TimedLaunch& l) {
          launches.push_back({o, l});
        },
        [&](const TallyRow& row) { late.push_back(row); });
  }
};

const LaunchMerger::Origin kOrigin{ThreadId{1}, StreamId{1}, DeviceId{1}};

}  // namespace

TEST_CASE("columns read back as the launches that went in, whatever their times") {
  Random random(GENERATE(1, 2, 3, 4, 5, 6, 7, 8));
  const uint64_t extreme = below(random, 2);  // times anywhere in 64 bits, or as a GPU gives them
  LaunchColumns columns(ThreadId{7}, StreamId{9});
  for (int reuse = 0; reuse < 2; ++reuse) {  // a cleared object is as good as a new one
    columns.clear();
    std::vector<TimedLaunch> launches(1 + below(random, 2000));
    uint64_t now = 1'000'000'000'000;
    for (TimedLaunch& l : launches) {
      l.signature = SignatureId{static_cast<uint32_t>(1 + below(random, 5))};
      l.path = PathId{static_cast<uint32_t>(below(random, 3))};
      l.sequence_plus_1 = below(random, 4) == 0 ? random() : 0;
      l.graph = below(random, 3) == 0;
      l.call = below(random, 3) == 0;
      l.windowed = below(random, 10) == 0;
      if (below(random, 5) != 0) {
        now += below(random, 10'000);
        l.start_ns = extreme != 0 ? random() | 1 : now - below(random, 20'000);
        l.end_ns = extreme != 0 ? random() | 1 : l.start_ns + below(random, 1000);
      }
      REQUIRE(columns.add(l));
    }
    const auto read = round_trip(columns);
    REQUIRE(read.size() == launches.size());
    for (size_t i = 0; i < read.size(); ++i) require_same(launches[i], read[i]);
  }
}

TEST_CASE("a batch that is full refuses, and its packet is within the limit at the worst") {
  Random random(1);
  LaunchColumns columns(ThreadId{0xFFFFFFFF}, StreamId{0xFFFFFFFF});
  TimedLaunch l;
  for (size_t i = 0; i < kMaxBatchLaunches; ++i) {
    l.signature = SignatureId{static_cast<uint32_t>(random() | 0x80000000)};
    l.path = PathId{static_cast<uint32_t>(random() | 0x80000000)};
    l.sequence_plus_1 = random() | (uint64_t{1} << 63);
    l.graph = i % 2 == 0;
    l.windowed = i % 2 == 1;
    l.start_ns = random() | (uint64_t{1} << 63);
    l.end_ns = random() >> 1;
    REQUIRE(columns.add(l));
  }
  REQUIRE(columns.full());
  REQUIRE_FALSE(columns.add(l));
  auto sink = std::make_unique<test::MemorySink>();
  std::string& bytes = sink->bytes;
  TraceWriter writer(std::move(sink));
  writer.launches(columns);
  REQUIRE(writer.flush());
  const auto trace = test::read_trace(bytes);
  for (const size_t size : trace.packet_bytes) CHECK(size < kMaxPacketBytes);
  CHECK(test::read_launches(trace.packets.back().launch_batch(), trace.patterns).size() ==
        kMaxBatchLaunches);
}

// A training program: steps of one order, on two streams, in batches that end anywhere; sequence
// numbers that count on; now and then a launch that never came before.
TEST_CASE("what repeats is said by reference, and reads back the same") {
  Random random(GENERATE(21, 22, 23, 24));
  auto sink = std::make_unique<test::MemorySink>();
  std::string& bytes = sink->bytes;
  TraceWriter writer(std::move(sink));
  constexpr uint32_t kStep = 500;
  constexpr uint32_t kSteps = 40;
  std::vector<TimedLaunch> step(kStep);
  for (uint32_t i = 0; i < kStep; ++i) {
    step[i].signature = SignatureId{static_cast<uint32_t>(1 + below(random, 60))};
    step[i].path = PathId{1 + i / 3};
    step[i].sequence_plus_1 = i % 4 == 3 ? 0 : i / 2;  // half of them are 0 at first
    step[i].call = i % 3 == 0;
  }
  std::map<uint32_t, std::vector<TimedLaunch>> in;
  std::vector<LaunchColumns> columns;
  for (uint32_t s = 1; s <= 2; ++s) columns.emplace_back(ThreadId{1}, StreamId{s});
  uint64_t now = 1'000'000'000'000;
  const uint64_t odd_one = below(random, kSteps * kStep);
  for (uint64_t k = 0; k < uint64_t{kSteps} * kStep; ++k) {
    TimedLaunch l = step[k % kStep];
    if (l.sequence_plus_1 != 0) l.sequence_plus_1 += k / kStep * kStep;
    if (k == odd_one) l.signature = SignatureId{1000};
    l.start_ns = now += below(random, 5000);
    l.end_ns = now += below(random, 5000);
    LaunchColumns& to = columns[k % kStep % 5 == 0 ? 1 : 0];
    REQUIRE(to.add(l));
    in[to.stream.value].push_back(l);
    if (below(random, 700) != 0 && k + 1 < uint64_t{kSteps} * kStep) continue;
    for (LaunchColumns& c : columns) {
      writer.launches(c);
      c.clear();
    }
  }
  REQUIRE(writer.flush());
  const auto trace = test::read_trace(bytes);
  // A step once, and pieces of it where batches ended when it was new.
  CHECK(trace.patterns.size() < 3 * kStep);
  std::map<uint32_t, size_t> at;
  size_t own = 0;
  for (const auto& packet : trace.packets) {
    if (!packet.has_launch_batch()) continue;
    const uint32_t stream = packet.launch_batch().stream();
    own += static_cast<size_t>(packet.launch_batch().signature_size());
    for (const auto& l : test::read_launches(packet.launch_batch(), trace.patterns))
      require_same(in[stream].at(at[stream]++), l);
  }
  for (const auto& [stream, launches] : in) CHECK(at[stream] == launches.size());
  CHECK(own < 2 * kStep);  // the first step, the odd one, ends of batches
}

TEST_CASE("past the bound of patterns, launches that never came before stand in their batch") {
  auto sink = std::make_unique<test::MemorySink>();
  std::string& bytes = sink->bytes;
  TraceWriter writer(std::move(sink));
  LaunchColumns columns(ThreadId{1}, StreamId{1});
  std::vector<uint32_t> in;
  const auto add = [&](uint32_t signature) {
    TimedLaunch l;
    l.signature = SignatureId{signature};
    l.sequence_plus_1 = signature % 2 == 0 ? in.size() : 0;
    l.start_ns = 1000 + in.size();
    l.end_ns = l.start_ns + 1;
    if (columns.full()) {
      writer.launches(columns);
      columns.clear();
    }
    REQUIRE(columns.add(l));
    in.push_back(signature);
  };
  constexpr uint32_t kAll = kMaxPatternRows + 5'000;
  for (uint32_t i = 0; i < 2 * kAll; ++i)
    add(1 + i / 10'000 * 5'000 + i % 5'000);           // 5,000 twice, the next twice
  for (uint32_t i = 7'000; i < 9'000; ++i) add(i);     // known in this order
  for (uint32_t i = kAll; i > 60'000; i -= 3) add(i);  // and in no order
  writer.launches(columns);
  REQUIRE(writer.flush());
  const auto trace = test::read_trace(bytes);
  CHECK(trace.patterns.size() > kMaxPatternRows - 5'000);
  CHECK(trace.patterns.size() <= kMaxPatternRows);
  std::vector<uint32_t> out;
  size_t own = 0;
  for (const auto& packet : trace.packets) {
    own += static_cast<size_t>(packet.launch_batch().signature_size());
    for (const auto& l : test::read_launches(packet.launch_batch(), trace.patterns)) {
      CHECK(l.sequence_plus_1 == (l.signature % 2 == 0 ? out.size() : 0));
      out.push_back(l.signature);
    }
  }
  CHECK(out == in);
  CHECK(own >= 5'000);
}

// Launches and times in random order and with random delays; every launch must come out once, in
// its origin's order, with its own time, be it in the batch or as a late row.
TEST_CASE("the merger gives every launch its time, in launch order") {
  Random random(GENERATE(11, 12, 13, 14, 15, 16));
  LaunchMerger merger(true);
  Outcome out;
  struct Made {
    LaunchMerger::Origin origin;
    uint32_t signature;
    KernelTime time;
    bool graph;
  };
  std::vector<Made> made;
  std::vector<KernelTime> in_flight;
  uint64_t never = 0;
  uint32_t correlation = 0xFFFFFF00;  // wraps on the way
  std::vector<KernelTime> strangers;
  for (int step = 0; step < 300; ++step) {
    for (uint64_t k = below(random, 30); k > 0; --k) {
      const LaunchMerger::Origin origin{ThreadId{static_cast<uint32_t>(1 + below(random, 3))},
                                        StreamId{static_cast<uint32_t>(1 + below(random, 2))},
                                        DeviceId{1}};
      if (++correlation == 0) ++correlation;
      std::vector<GraphNode> nodes;
      if (below(random, 6) == 0)
        for (uint64_t n = 1 + below(random, 5); n > 0; --n)
          nodes.push_back({SignatureId{static_cast<uint32_t>(100 + n)}, PathId{}, 0, 900 + n});
      std::vector<KernelTime> times;
      const auto add = [&](uint32_t signature, uint64_t node) {
        const uint64_t start = 1 + random() % 1'000'000'000;
        const KernelTime t{correlation, node, start, start + 1 + below(random, 100'000)};
        made.push_back({origin, signature, t, node != 0});
        times.push_back(t);
      };
      const uint32_t signature = static_cast<uint32_t>(made.size() + 1);
      if (nodes.empty())
        add(signature, 0);
      else
        for (const GraphNode& n : nodes) add(n.signature.value, n.node);
      const bool early = below(random, 8) == 0;
      if (early) merger.times(times);
      LaunchRecord r = record(nodes.empty() ? signature : 0, correlation);
      if (nodes.empty())
        merger.launch(origin, r);
      else
        merger.graph_launch(origin, r, nodes);
      if (early) continue;
      if (below(random, 50) == 0)
        never += times.size();
      else
        in_flight.insert(in_flight.end(), times.begin(), times.end());
    }
    std::shuffle(in_flight.begin(), in_flight.end(), random);
    const size_t arrive = below(random, in_flight.size() + 1);
    merger.times({in_flight.data(), arrive});
    in_flight.erase(in_flight.begin(), in_flight.begin() + static_cast<std::ptrdiff_t>(arrive));
    if (below(random, 3) == 0) out.take(merger, 2);
  }
  const uint64_t untimed_before = in_flight.size();
  out.take(merger, 2, true);
  merger.times(in_flight);
  out.take(merger, 2, true);
  (void)untimed_before;

  REQUIRE(out.launches.size() == made.size());
  CHECK(merger.pending() == 0);
  CHECK(merger.activity_unmatched() == 0);
  CHECK(merger.activity_records() == made.size() - never);
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const Made*>> expected;
  for (const Made& m : made) expected[{m.origin.thread.value, m.origin.stream.value}].push_back(&m);
  std::map<std::pair<uint32_t, uint32_t>, size_t> next;
  uint64_t timed = 0;
  uint64_t gpu_time = 0;
  for (const Released& r : out.launches) {
    const std::pair key{r.origin.thread.value, r.origin.stream.value};
    const Made& m = *expected[key].at(next[key]++);
    REQUIRE(r.launch.signature.value == m.signature);
    REQUIRE(r.launch.graph == m.graph);
    if (!r.launch.timed()) continue;
    ++timed;
    gpu_time += r.launch.end_ns - r.launch.start_ns;
    REQUIRE(r.launch.start_ns == m.time.start_ns);
    REQUIRE(r.launch.end_ns == m.time.end_ns);
  }
  for (const TallyRow& row : out.late) {
    CHECK(row.launches == 0);
    timed += row.timed;
    gpu_time += row.gpu_time_ns;
  }
  CHECK(timed == made.size() - never);
  CHECK(out.late.size() > 10);  // the test reaches that path
}

TEST_CASE("a launch waits for its time for max_age releases, and holds back those behind it") {
  LaunchMerger merger(true);
  Outcome out;
  merger.launch(kOrigin, record(1, 10));
  merger.launch(kOrigin, record(2, 11));
  const KernelTime second{11, 0, 500, 600};
  merger.times({&second, 1});
  const LaunchMerger::Origin other{ThreadId{2}, StreamId{1}, DeviceId{1}};
  merger.launch(other, record(3, 12));
  const KernelTime third{12, 0, 700, 800};
  merger.times({&third, 1});
  out.take(merger, 2);
  REQUIRE(out.launches.size() == 1);  // the other origin is not held back
  CHECK(out.launches[0].launch.signature.value == 3);
  out.take(merger, 2);
  REQUIRE(out.launches.size() == 1);
  out.take(merger, 2);
  REQUIRE(out.launches.size() == 3);
  CHECK_FALSE(out.launches[1].launch.timed());
  CHECK(out.launches[2].launch.start_ns == 500);
  const KernelTime late{10, 0, 100, 250};
  merger.times({&late, 1});
  out.take(merger, 2);
  REQUIRE(out.late.size() == 1);
  CHECK(out.late[0].launches == 0);
  CHECK(out.late[0].timed == 1);
  CHECK(out.late[0].gpu_time_ns == 150);
  CHECK(out.late[0].signature.value == 1);
}

TEST_CASE("a correlation id in use again never times the earlier launch") {
  LaunchMerger merger(true);
  Outcome out;
  merger.launch(kOrigin, record(1, 10));
  SECTION("while the first still waits") {}
  SECTION("after the first was released untimed") {
    out.take(merger, 0);
    REQUIRE(out.launches.size() == 1);
  }
  merger.launch(kOrigin, record(2, 10));
  const KernelTime time{10, 0, 100, 200};
  merger.times({&time, 1});
  out.take(merger, 5);
  REQUIRE(out.launches.size() == 2);
  CHECK_FALSE(out.launches[0].launch.timed());
  CHECK(out.launches[1].launch.start_ns == 100);
  CHECK(out.late.empty());
}

TEST_CASE("times that cannot be used leave the launch untimed") {
  LaunchMerger merger(true);
  Outcome out;
  merger.launch(kOrigin, record(1, 10));
  merger.launch(kOrigin, record(2, 11));
  const KernelTime times[] = {{10, 0, 0, 0}, {11, 0, 500, 400}};
  merger.times(times);
  out.take(merger, 100);  // and it is not waited for
  REQUIRE(out.launches.size() == 2);
  CHECK_FALSE(out.launches[0].launch.timed());
  CHECK_FALSE(out.launches[1].launch.timed());
}

TEST_CASE("graph nodes without an id are not timed, unless the node is the only one") {
  LaunchMerger merger(true);
  Outcome out;
  const GraphNode two[] = {{SignatureId{1}, PathId{5}, 3, 0}, {SignatureId{2}, PathId{}, 0, 0}};
  LaunchRecord r = record(0, 10);
  r.path = PathId{8};
  r.sequence_plus_1 = 4;
  merger.graph_launch(kOrigin, r, two);
  r.correlation = 11;
  merger.graph_launch(kOrigin, r, {two, 1});
  const KernelTime times[] = {{10, 0, 100, 200}, {11, 0, 300, 400}};
  merger.times(times);
  out.take(merger, 100);
  REQUIRE(out.launches.size() == 3);
  CHECK_FALSE(out.launches[0].launch.timed());
  CHECK(out.launches[0].launch.path == PathId{5});
  CHECK(out.launches[0].launch.sequence_plus_1 == 3);
  CHECK(out.launches[1].launch.path == PathId{8});  // the launch's own
  CHECK(out.launches[1].launch.sequence_plus_1 == 4);
  CHECK(out.launches[2].launch.start_ns == 300);
}

TEST_CASE("a node of a conditional body is a launch for each record of it, before and after") {
  GraphNode node{SignatureId{7}, PathId{5}, 3, 55};
  node.conditional = true;
  for (const int before : {0, 1, 3}) {
    LaunchMerger merger(true);
    Outcome out;
    std::vector<KernelTime> times;
    for (uint64_t i = 0; i < 5; ++i) times.push_back({10, 55, 100 * (i + 1), 100 * (i + 1) + i});
    merger.times(std::span(times).first(static_cast<size_t>(before)));
    CHECK(merger.conditional(kOrigin, record(0, 10), {&node, 1}));
    merger.times(std::span(times).subspan(static_cast<size_t>(before)));
    out.take(merger, 2);
    REQUIRE(out.launches.size() == times.size());
    uint64_t time = 0;
    for (const Released& r : out.launches) {
      CHECK(r.launch.signature == SignatureId{7});
      CHECK(r.launch.path == PathId{5});
      CHECK(r.launch.graph);
      CHECK(r.launch.found);
      time += r.launch.end_ns - r.launch.start_ns;
    }
    CHECK(time == 0 + 1 + 2 + 3 + 4);
    out.take(merger, 2, true);
    CHECK(out.launches.size() == times.size());
    CHECK(merger.activity_unmatched() == 0);
    CHECK(merger.duplicates() == 0);
  }
}

TEST_CASE("where records cannot tell how often a body ran, that is said") {
  GraphNode node{SignatureId{7}, PathId{5}, 3, 0};
  node.conditional = true;
  LaunchMerger timed(true), counting(false);
  CHECK_FALSE(timed.conditional(kOrigin, record(0, 10), {&node, 1}));  // no id
  node.node = 55;
  CHECK(timed.conditional(kOrigin, record(0, 10), {&node, 1}));
  CHECK_FALSE(counting.conditional(kOrigin, record(0, 10), {&node, 1}));
  CHECK(counting.conditional(kOrigin, record(0, 10), {}));  // there is nothing to tell
}

TEST_CASE("a record that comes twice is a duplicate, and its launch is one launch") {
  LaunchMerger merger(true);
  Outcome out;
  merger.launch(kOrigin, record(1, 10));
  const KernelTime times[] = {{10, 0, 100, 200}, {10, 0, 100, 200}, {11, 0, 300, 400}};
  merger.times(times);
  out.take(merger, 2);
  merger.times({times, 1});
  out.take(merger, 2, true);
  CHECK(out.launches.size() == 1);
  CHECK(out.late.empty());
  CHECK(merger.duplicates() == 2);
  CHECK(merger.activity_records() == 4);
  CHECK(merger.activity_unmatched() == 1);
}

TEST_CASE("count mode releases everything at once") {
  LaunchMerger merger(false);
  Outcome out;
  for (uint32_t i = 1; i <= 100; ++i) merger.launch(kOrigin, record(i, i));
  out.take(merger, 100);
  REQUIRE(out.launches.size() == 100);
  CHECK(merger.pending() == 0);
}

TEST_CASE("every table of the merger is bounded, and what it lets go is counted") {
  LaunchMerger merger(true);
  Outcome out;
  SECTION("launches") {
    for (uint32_t i = 1; i <= kMaxPending; ++i) merger.launch(kOrigin, record(i, i));
    REQUIRE(merger.full());
    out.take(merger, 1000);
    CHECK(out.launches.size() == kMaxPending / 2);
    CHECK(merger.pending() == kMaxPending / 2);
    CHECK_FALSE(merger.full());
    CHECK(out.launches[0].launch.signature.value == 1);  // the oldest
  }
  SECTION("times") {
    for (uint32_t i = 1; i <= kMaxEarlyTimes + 10; ++i) {
      const KernelTime time{i, 0, 1, 2};
      merger.times({&time, 1});
    }
    CHECK(merger.activity_unmatched() == 10);
    for (uint32_t i = 0; i <= 2 + kEarlyAge; ++i) out.take(merger, 2);
    CHECK(merger.activity_unmatched() == kMaxEarlyTimes + 10);
  }
}

TEST_CASE("columns: when launches were called for, of those alone that come after a gap") {
  const auto batch_of = [](uint64_t gap_ns, bool calls, std::vector<ReadLaunch>* read) {
    LaunchColumns columns(ThreadId{1}, StreamId{1});
    uint64_t at = 1'000'000'000;
    for (uint32_t i = 0; i < 1000; ++i, at += 10'000 + gap_ns) {
      TimedLaunch launch;
      launch.signature = SignatureId{1};
      launch.start_ns = at;
      launch.end_ns = at + 10'000;
      launch.called_ns = calls ? at - 5'000 - i : 0;
      if (calls && i % 100 == 99)
        launch.pause = {PathId{7}, launch.called_ns - 200'000, launch.called_ns - 300};
      REQUIRE(columns.add(launch));
    }
    auto sink = std::make_unique<test::MemorySink>();
    const std::string& bytes = sink->bytes;
    TraceWriter writer(std::move(sink));
    writer.launches(columns, 150);
    REQUIRE(writer.flush());
    const auto trace = test::read_trace(bytes);
    const auto& batch = trace.packets.back().launch_batch();
    if (read != nullptr) *read = test::read_launches(batch, trace.patterns);
    CHECK(batch.clock_error_ns() == (calls ? 150 : 0));
    return bytes.size();
  };
  std::vector<ReadLaunch> launches;
  const size_t without = batch_of(2'000, false, nullptr), with = batch_of(2'000, true, &launches);
  for (uint32_t i = 0; i < 1000; ++i) {
    CHECK(launches[i].called_before_ns == (5'000 + i) / 128 * 128);
    CHECK(launches[i].pause_path == (i % 100 == 99 ? 7 : 0));
    CHECK(launches[i].pause_ns == (i % 100 == 99 ? 199'700 / 128 * 128 : 0));
    CHECK(launches[i].pause_end_before_ns == (i % 100 == 99 ? 256 : 0));
  }
  // A byte for each launch after a gap up to 16 us after its call; ten pauses; the clocks' error.
  CHECK(with - without <= 1000 + 10 * 6 + 12);
  // Where the GPU is never idle, the first one's call is all.
  CHECK(batch_of(1'999, true, nullptr) - batch_of(1'999, false, nullptr) <= 12);
}
