// When devices were busy, against unions and spreads worked out the slow way.
#include <algorithm>
#include <random>

#include "catch.h"
#include "passes/rows/busy_track.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;
using flopinj::trace::TracePacket;

namespace {

using Random = std::mt19937_64;
uint64_t below(Random& random, uint64_t n) { return random() % n; }

struct Span {
  uint64_t begin = 0, end = 0;
  uint32_t kernel = 1;
};

struct Expected {
  uint64_t busy = 0, kernels = 0;
  std::vector<uint64_t> gaps;  // longest first
};

Expected brute_force(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  Expected e;
  uint64_t end = spans.front().begin;
  for (const Span& s : spans) {
    e.kernels += s.end - s.begin;
    if (s.begin > end) e.gaps.push_back(s.begin - end);
    e.busy += s.end > end ? s.end - std::max(s.begin, end) : 0;
    end = std::max(end, s.end);
  }
  std::sort(e.gaps.rbegin(), e.gaps.rend());
  return e;
}

void require_same(const BusyTime& time, const Expected& e) {
  REQUIRE(time.late == 0);
  REQUIRE(time.busy_ns == e.busy);
  uint64_t at_least = 1;
  for (const auto& decade : time.idle) {
    BusyTime::Decade expected;
    for (const uint64_t gap : e.gaps)
      if (gap >= at_least && gap < 10 * at_least) {
        ++expected.gaps;
        expected.ns += gap;
      }
    REQUIRE(decade.gaps == expected.gaps);
    REQUIRE(decade.ns == expected.ns);
    at_least *= 10;
  }
  REQUIRE(time.largest.size() == std::min(e.gaps.size(), BusyTime::kLargest));
  for (size_t i = 0; i < time.largest.size(); ++i) REQUIRE(time.largest[i].length_ns == e.gaps[i]);
}

// Batches of several streams, as a recorder writes them: each stream in order, streams overlapping.
std::vector<std::vector<Span>> batches(Random& random, size_t count) {
  std::vector<std::vector<Span>> all;
  std::vector<uint64_t> now(3, 1'000'000);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t flush = 1'000'000 + (i / 3 + 1) * 50'000;
    std::vector<Span> batch;
    for (uint64_t& at = now[i % 3]; at < flush;) {
      at += below(random, 4) == 0 ? below(random, 20'000) : below(random, 30);
      const uint64_t end = at + below(random, 3'000);
      batch.push_back({at, end, static_cast<uint32_t>(1 + below(random, 2))});
      at = end;
    }
    if (!batch.empty()) all.push_back(std::move(batch));
  }
  return all;
}

std::vector<BusyInterval> intervals(const std::vector<Span>& batch) {
  std::vector<BusyInterval> list;
  for (const Span& s : batch)
    list.push_back({s.begin, BusyInterval::packed_kernel(s.kernel) | (s.end - s.begin)});
  return list;
}

// A batch with these times, written from the field comments of flop_trace.proto.
void add_batch(TraceBuilder& t, const std::vector<Span>& batch, uint32_t stream) {
  TracePacket p;
  auto& b = *p.mutable_launch_batch();
  b.set_thread(1);
  b.set_stream(stream);
  b.set_first_start_ns(batch.front().begin);
  b.add_range_path_run(0);
  b.add_range_path_run(static_cast<uint32_t>(batch.size()));
  uint64_t end = batch.front().begin;
  std::map<uint32_t, uint64_t> last;
  for (const Span& s : batch) {
    b.add_signature(s.kernel);
    b.add_gap_ns(static_cast<int64_t>(s.begin - end));
    b.add_duration_delta_ns(static_cast<int64_t>(s.end - s.begin - last[s.kernel]));
    last[s.kernel] = s.end - s.begin;
    end = s.end;
  }
  t.add(p);
}

TraceBuilder two_kernels(uint64_t session) {
  TraceBuilder t = started(session);
  t.stream(2);
  t.stream(3);
  t.kernel(1, "a", 11);
  t.kernel(2, "b", 12);
  t.samples(1, 1, {sass(1000, 0, 0)});
  t.samples(1, 2, {sass(0, 0, 4)});
  return t;
}

// One stream, with kernels of no length and gaps of any; beside it a few that cover some of both.
// Each is a kernel of its own, in the order of their beginnings.
std::vector<Span> spans_with_gaps(Random& random, size_t count) {
  std::vector<Span> spans;
  uint64_t now = 1'000'000;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t longest = random() % 50 == 0 ? 300'000'000 : random() % 9 == 0 ? 40'000 : 2'000;
    if (below(random, 3) != 0) now += below(random, longest);
    spans.push_back({now, now + (below(random, 8) == 0 ? 0 : below(random, 5'000))});
    now = spans.back().end;
    if (below(random, 60) == 0)
      spans.push_back({now - below(random, 50), now + below(random, 30'000)});
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < spans.size(); ++i) spans[i].kernel = static_cast<uint32_t>(i + 1);
  return spans;
}

std::vector<IdleGap> gaps_one_by_one(const std::vector<Span>& spans) {
  std::vector<IdleGap> gaps;
  Span last = spans.front();
  uint64_t covered = last.begin;
  for (const Span& s : spans) {
    if (s.begin > covered) {
      gaps.push_back({covered, s.begin - covered, last.kernel, s.kernel});
      covered = s.begin;
    }
    if (s.end <= covered) continue;
    covered = s.end;
    last = s;
  }
  return gaps;
}

}  // namespace

TEST_CASE("the union of times is that of all intervals, whatever is folded when and by whom") {
  Random random(GENERATE(1, 2, 3, 4, 5, 6));
  const auto all = batches(random, 900);
  std::vector<Span> spans;
  for (const auto& batch : all) spans.insert(spans.end(), batch.begin(), batch.end());
  const Expected expected = brute_force(spans);
  // As many are kept as a flush of all streams has, and more; parts of 300 batches fold some of
  // them.
  REQUIRE(spans.size() > 10'000);
  for (const size_t kept : {size_t{400}, size_t{1'000'000}}) {
    BusyTrack whole(kept, false);
    for (const auto& batch : all) whole.add(intervals(batch));
    require_same(whole.take(), expected);
    for (const size_t part_size : {1, 7, 30, 300}) {
      BusyTrack joined(kept, false);
      for (size_t from = 0; from < all.size(); from += part_size) {
        BusyTrack part(kept, true);
        for (size_t i = from; i < std::min(all.size(), from + part_size); ++i)
          part.add(intervals(all[i]));
        joined.append(part);
      }
      require_same(joined.take(), expected);
    }
  }
}

TEST_CASE("gaps lie between the kernels that a plain walk through time finds") {
  Random random(GENERATE(1, 2, 3, 4, 5, 6));
  const auto spans = spans_with_gaps(random, 20'000);
  auto gaps = gaps_one_by_one(spans);
  std::sort(gaps.begin(), gaps.end(), [](const IdleGap& a, const IdleGap& b) {
    return a.length_ns != b.length_ns ? a.length_ns > b.length_ns : a.begin_ns < b.begin_ns;
  });
  BusyTrack track(100, false);
  for (auto at = spans.begin(); at != spans.end();) {
    const auto batch = std::min<std::ptrdiff_t>(
        spans.end() - at, 1 + static_cast<std::ptrdiff_t>(below(random, 300)));
    track.add(intervals({at, at + batch}));
    at += batch;
  }
  const BusyTime time = track.take();
  require_same(time, brute_force(spans));
  for (size_t i = 0; i < BusyTime::kLargest; ++i) {
    CHECK(time.largest[i].begin_ns == gaps[i].begin_ns);
    CHECK(time.largest[i].before == gaps[i].before);
    CHECK(time.largest[i].after == gaps[i].after);
  }
}

TEST_CASE("gaps that are added several at a time are those that are added one by one") {
  Random random(GENERATE(1, 2, 3));
  for (int round = 0; round < 3'000; ++round) {
    auto spans = spans_with_gaps(random, 1 + below(random, 40));
    const auto list = intervals(spans);
    const uint64_t most = below(random, 2) == 0 ? ShortGaps::kLongest : below(random, 5'000);
    const uint64_t covered = list[0].end() + below(random, 4) * below(random, 4'000);
    const BusyInterval* const at = list.data() + 1;
    const BusyInterval* const end = list.data() + list.size();
    ShortGaps together, one_by_one;
    const BusyInterval* const to = together.add_between(at, end, covered, most);
    REQUIRE(to >= at);
    REQUIRE(to <= end);
    const auto gap_of = [&](const BusyInterval* i) {
      const uint64_t before = std::max(covered, i[-1].end());
      return i->begin > before ? i->begin - before : 0;
    };
    const auto refused = [&](const BusyInterval& i) {
      return i.begin < (&i - 1)->end() || gap_of(&i) > most;
    };
    for (const BusyInterval* i = at; i != to; ++i) one_by_one.add(gap_of(i));
    REQUIRE(std::none_of(at, to, refused));
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
      REQUIRE((end - to < ShortGaps::kAtOnce || std::any_of(to, to + ShortGaps::kAtOnce, refused)));
#endif
    BusyTime expected, found;
    REQUIRE(together.move_to(found) == one_by_one.move_to(expected));
    for (size_t k = 0; k < BusyTime::kDecades; ++k) {
      REQUIRE(found.idle[k].gaps == expected.idle[k].gaps);
      REQUIRE(found.idle[k].ns == expected.idle[k].ns);
    }
  }
}

TEST_CASE("short gaps go to the decades that long ones would go to") {
  Random random(3);
  std::vector<uint64_t> gaps{0, 0};
  for (uint64_t power = 1; power <= ShortGaps::kLongest; power *= 10)
    gaps.insert(gaps.end(), {power - 1, power, power + 1});
  for (uint64_t power = 1; power <= ShortGaps::kLongest; power *= 2) gaps.push_back(power);
  while (gaps.size() < ShortGaps().room()) gaps.push_back(ShortGaps::kLongest - below(random, 100));
  ShortGaps together;
  BusyTime expected, found;
  uint64_t all = 0;
  for (const uint64_t gap : gaps) {
    together.add(gap);
    if (gap > 0) expected.add_gap({0, gap, 0, 0});
    all += gap;
  }
  together.added(gaps.size());
  CHECK(together.room() == 0);
  CHECK(together.move_to(found) == all);
  CHECK(together.room() == gaps.size());
  CHECK(together.move_to(found) == 0);
  for (size_t i = 0; i < BusyTime::kDecades; ++i) {
    CHECK(found.idle[i].gaps == expected.idle[i].gaps);
    CHECK(found.idle[i].ns == expected.idle[i].ns);
  }
}

TEST_CASE("what comes too late to be joined is counted and closes no gap") {
  BusyTrack track(4, false);
  std::vector<Span> spans;
  for (uint64_t i = 0; i < 100; ++i) spans.push_back({1000 + 100 * i, 1000 + 100 * i + 60});
  track.add(intervals(spans));
  track.add(intervals({{1050, 1120}}));
  const BusyTime time = track.take();
  CHECK(time.late == 1);
  CHECK(time.late_ns == 70);
  CHECK(time.busy_ns == 100 * 60);
}

TEST_CASE("FLOP over time: every bin has what of each launch lies in it") {
  Random random(GENERATE(1, 2, 3));
  FlopSeries whole;
  std::vector<FlopSeries> parts(3);
  std::vector<std::pair<Span, uint64_t>> launches;
  uint64_t now = 5'000'000'000;
  uint64_t total = 0;
  for (int i = 0; i < 3000; ++i) {
    const Span s{now, now + below(random, i % 100 == 0 ? 3'000'000 : 20'000)};
    const uint64_t flop = below(random, 1'000'000'000);
    now = s.begin + below(random, 20'000);  // they overlap
    launches.push_back({s, flop});
    total += flop;
    whole.add(s.begin, s.end, flop);
    parts[below(random, parts.size())].add(s.begin, s.end, flop);
  }
  whole.finish();
  FlopSeries joined;
  for (auto& part : parts) {
    part.finish();
    joined.add(part);
  }
  CHECK(joined.bin_ns() == whole.bin_ns());
  CHECK(joined.begin_ns() == whole.begin_ns());
  CHECK(joined.bins() == whole.bins());
  CHECK(whole.bins().size() <= FlopSeries::kMostBins);
  CHECK(whole.bins().size() > FlopSeries::kMostBins / 4);  // and no coarser than need be
  u128 sum = 0;
  for (const u128 bin : whole.bins()) sum += bin;
  CHECK(sum == u128{total});
  for (size_t i = 0; i < whole.bins().size(); i += 17) {
    const uint64_t begin = whole.begin_ns() + i * whole.bin_ns();
    const uint64_t end = begin + whole.bin_ns();
    double expected = 0;
    double pieces = 0;
    for (const auto& [s, flop] : launches) {
      if (s.end <= begin || s.begin >= end || s.end == s.begin) continue;
      const auto inside = static_cast<double>(std::min(s.end, end) - std::max(s.begin, begin));
      expected += static_cast<double>(flop) * inside / static_cast<double>(s.end - s.begin);
      ++pieces;
    }
    double none = 0;  // launches without a duration stand where they began
    for (const auto& [s, flop] : launches)
      if (s.end == s.begin && s.begin >= begin && s.begin < end) none += static_cast<double>(flop);
    CHECK(std::abs(static_cast<double>(whole.bins()[i]) - expected - none) <= pieces + 1);
  }
}

TEST_CASE("launches that are added up together are spread over time as one by one") {
  // With the larger one not even 128 launches fit into a number.
  const uint64_t fadd = GENERATE(uint64_t{1000}, uint64_t{1} << 60);
  Random random(11);
  TraceBuilder t = started(1);
  t.stream(2);
  t.kernel(1, "a", 11);
  t.kernel(2, "b", 12);
  t.samples(1, 1, {sass(static_cast<double>(fadd), 0, 0)});
  t.samples(1, 2, {sass(0, 0, 4)});
  FlopSeries expected;
  std::vector<Span> spans;
  for (uint32_t batch = 0; batch < 40; ++batch) {
    uint64_t now = 1'000'000 + batch / 2 * 1'000'000;
    std::vector<Span> launches;
    for (size_t i = 0, count = 1 + below(random, 700); i < count; ++i) {
      // On some streams kernels overlap, now and then, or one ends before the one before it.
      const uint64_t back = batch % 4 == 3 && below(random, 50) == 0 ? below(random, 2000) : 0;
      const uint64_t begin = now + below(random, 2000) - std::min(now - 1'000'000, back);
      now = begin + below(random, i % 200 == 7 ? 100'000 : 2000);
      launches.push_back({begin, now, static_cast<uint32_t>(1 + below(random, 2))});
    }
    add_batch(t, launches, 1 + batch % 2);
    spans.insert(spans.end(), launches.begin(), launches.end());
  }
  for (const Span& s : spans) expected.add(s.begin, s.end, s.kernel == 1 ? fadd : 8);
  expected.finish();
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  REQUIRE(r.time.devices.size() == 1);
  const auto& d = r.time.devices[0];
  CHECK(d.placed == spans.size());
  const Expected sums = brute_force(spans);
  CHECK(r.time.kernel_ns == u128{sums.kernels});
  CHECK(r.time.busy_ns == u128{sums.busy});
  REQUIRE(d.flop.size() == 1);  // one phase
  CHECK(d.flop[0].flop == expected.bins());
}

TEST_CASE("a kernel too long to be placed in time counts all the same, as do those around it") {
  constexpr uint64_t kNoPlace = uint64_t{1} << 41;
  TraceBuilder t = two_kernels(1);
  std::vector<Span> launches;
  uint64_t now = 1000;
  for (size_t i = 0; i < 300; ++i) {
    const uint64_t length = i == 100 || i == 299 ? kNoPlace : 10;
    launches.push_back({now, now + length, i % 2 == 0 ? 1U : 2U});
    now += length + 5;
  }
  add_batch(t, launches, 1);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.total.launches == 300);
  CHECK(r.total.flop == u128{150 * 1000 + 150 * 8});
  const auto& d = r.time.devices.at(0);
  CHECK(d.placed == 298);
  CHECK(d.unplaced == 2);
  u128 over_time = 0;
  for (const auto& series : d.flop)
    for (const u128 bin : series.flop) over_time += bin;
  CHECK(over_time == u128{149 * 1000 + 149 * 8});
}

TEST_CASE("the report: sum, union, idle, wall and FLOP over time add up") {
  Random random(7);
  TraceBuilder t = two_kernels(1);
  std::vector<Span> spans;
  uint32_t stream = 0;
  uint64_t flop = 0;
  for (const auto& batch : batches(random, 30)) {
    add_batch(t, batch, 1 + stream++ % 3);
    spans.insert(spans.end(), batch.begin(), batch.end());
  }
  for (const Span& s : spans) flop += s.kernel == 1 ? 1000 : 8;
  t.overhead(2'000, 60'000'000);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const Expected e = brute_force(spans);
  REQUIRE(r.time.devices.size() == 1);
  const auto& d = r.time.devices[0];
  CHECK(d.placed == spans.size());
  CHECK(d.unplaced == 0);
  CHECK(r.time.complete);
  CHECK(r.time.kernel_ns == u128{e.kernels});
  CHECK(r.time.busy_ns == u128{e.busy});
  uint64_t idle = 0;
  for (const uint64_t gap : e.gaps) idle += gap;
  CHECK(r.time.idle_ns == u128{idle});
  CHECK(r.time.wall_ns == u128{60'000'000});
  CHECK(r.time.own_ns == u128{2'000});
  REQUIRE(d.largest.size() == BusyTime::kLargest);
  CHECK(d.largest[0].length_ns == e.gaps[0]);
  u128 over_time = 0;
  for (const auto& series : d.flop)
    for (const u128 bin : series.flop) over_time += bin;
  CHECK(over_time == u128{flop});
  CHECK(over_time == r.total.flop);
}

TEST_CASE("utilization of busy time: kernels that overlap take their time once") {
  TraceBuilder t = two_kernels(1);
  add_batch(t, {{1000, 2000, 1}}, 1);
  add_batch(t, {{1500, 2500, 1}}, 2);
  t.end();
  ReduceOptions options;
  options.utilization.peaks.push_back({"", "fp32", 4e9});  // 4 FLOP in a ns
  const Report r = reduce_bytes({t.bytes()}, options);
  const auto& executed = r.utilization.methods.at(0);
  REQUIRE(executed.gpu_time.known());
  REQUIRE(executed.busy.known());
  CHECK(*executed.gpu_time.number() == Approx(2 * 1000 / (4 * 2000.0)));
  CHECK(*executed.busy.number() == Approx(2 * 1000 / (4 * 1500.0)));
  const auto step = std::find_if(r.utilization.methods.begin(), r.utilization.methods.end(),
                                 [](const auto& m) { return m.name == "batch"; });
  CHECK_FALSE(step->busy.known());
}

TEST_CASE("before and after the longest gap stand the kernels that ran there") {
  TraceBuilder t = two_kernels(1);
  add_batch(t, {{1000, 1100, 1}, {1200, 1300, 2}, {9000, 9100, 1}, {9150, 9200, 1}}, 1);
  add_batch(t, {{1250, 1400, 1}}, 2);  // ends after kernel b does
  t.end();
  for (const std::string& bytes : {t.bytes(), merge_bytes({{"t", t.bytes()}}).bytes}) {
    const Report r = reduce_bytes({bytes});
    const auto& gap = r.time.devices.at(0).largest.at(0);
    CHECK(gap.begin_ns == 400);
    CHECK(gap.length_ns == 7600);
    CHECK(gap.before == "a");
    CHECK(gap.after == "a");
    CHECK(r.time.devices[0].largest.at(1).after == "b");
  }
}

TEST_CASE("level tally: how long is known, when is not") {
  TraceBuilder t = two_kernels(1);
  t.tally({{1, 5, 5, 500}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  REQUIRE(r.time.devices.size() == 1);
  CHECK(r.time.devices[0].unplaced == 5);
  CHECK_FALSE(r.time.busy_ns);
  CHECK_FALSE(r.time.kernel_ns);
  CHECK_FALSE(r.time.idle_ns);
  CHECK(json_of(r)["device_time"][0]["busy_ns"].is_null());
  CHECK(json_of(r)["flop_over_time"].empty());
}

TEST_CASE("the same report, to the byte, on any number of threads") {
  Random random(9);
  std::vector<std::string> traces;
  for (uint64_t session = 1; session <= 4; ++session) {
    TraceBuilder t = two_kernels(session);
    size_t parts = 0;
    size_t cut = 0;
    uint32_t stream = 0;
    for (const auto& batch : batches(random, 90)) {
      if (stream % 30 == 29) {  // the process went on in another file
        traces.push_back(t.bytes().substr(cut));
        cut = t.bytes().size();
        t.header(session, false, 1, static_cast<uint32_t>(100 + session));
        ++parts;
      }
      add_batch(t, batch, 1 + stream++ % 3);
    }
    t.tally({{1, 5, 5, 500}, {99, 1, 1, 7}});
    t.end();
    traces.push_back(t.bytes().substr(cut));
    REQUIRE(parts >= 2);
  }
  std::string first;
  for (const unsigned jobs : {1U, 2U, 3U, 7U}) {
    ReduceOptions options;
    options.jobs = jobs;
    const Report report = reduce_bytes(traces, options);
    CHECK(report.traces.size() == 4);
    CHECK(report.time.devices.at(0).late == 0);
    const std::string json = json_of(report).dump();
    if (first.empty()) first = json;
    CHECK(json == first);
  }
}

TEST_CASE("the same report, to the byte, where several threads read one file") {
  Random random(11);
  TraceBuilder t = two_kernels(1);
  std::vector<Span> spans;
  uint32_t count = 0;
  for (const auto& batch : batches(random, 90)) {
    // A name that nothing uses: so launches lie far apart in the file, and segments end among them.
    if (count % 10 == 0) t.string(50, std::string(3U << 20, 'x'));
    add_batch(t, batch, 1 + count++ % 3);
    spans.insert(spans.end(), batch.begin(), batch.end());
  }
  t.end();
  REQUIRE(t.bytes().size() > 3 * Segments::kBytes);
  const Expected expected = brute_force(spans);
  std::string first;
  for (const unsigned jobs : {1U, 2U, 5U}) {
    ReduceOptions options;
    options.jobs = jobs;
    const Report report = reduce_bytes({t.bytes()}, options);
    CHECK(report.total.launches == spans.size());
    CHECK(report.time.kernel_ns == u128{expected.kernels});
    CHECK(report.time.busy_ns == u128{expected.busy});
    const std::string json = json_of(report).dump();
    if (first.empty()) first = json;
    CHECK(json == first);
  }
}

namespace {

// 4 us of wall time on the trace's clock, 40 in real time, of which the profiler took 10; a kernel
// that runs for 1 us.
Report simulated(bool one_clock) {
  constexpr uint64_t kBegin = 1'000'000'000;
  TracePacket header;
  auto* h = header.mutable_header();
  h->set_format_major(1);
  h->set_simulated(true);
  h->set_simulated_clock(one_clock);
  h->set_ptx_counts(one_clock);
  h->set_clock_trace_ns(kBegin);
  TraceBuilder t;
  t.add(header);
  t.device(1, "GH100", "simgpu GH100 (simulated)");
  t.kernel(1, "k", 100);
  t.launches({{1, 1000}});
  TracePacket end;
  end.mutable_self_overhead()->set_launch_callback_ns(10'000);
  end.mutable_self_overhead()->set_real_wall_ns(40'000);
  t.add(end);
  end.Clear();
  end.mutable_end()->set_time_ns(kBegin + 4000);
  t.add(end);
  return reduce_bytes({t.bytes()});
}

}  // namespace

TEST_CASE("wall time and GPU time are compared where both are of the simulated clock") {
  const Report old = simulated(false), now = simulated(true);
  CHECK_FALSE(old.simulated_clock);
  CHECK(old.utilization.wall_ns.why() ==
        "simulated GPU time and real wall time cannot be compared");
  CHECK(now.simulated_clock);
  CHECK(now.utilization.wall_ns.number() == 4000.0);
  CHECK(now.time.own_wall_ns == u128{40'000});
  CHECK(text_of(old).find("simulated clock") == std::string::npos);
  CHECK(text_of(now).find("SIMULATED by simgpu (simulated clock, PTX counts):") !=
        std::string::npos);
}
