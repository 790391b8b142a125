// The same launches by reference to patterns, named one by one, and both: one report.
#include <algorithm>
#include <map>
#include <random>

#include "catch.h"
#include "passes/rows/place_rows.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;
using flopinj::trace::TracePacket;

namespace {

using Random = std::mt19937_64;
uint64_t below(Random& random, uint64_t n) { return random() % n; }

constexpr uint32_t kPaths = 4;  // and launches outside of all of them
constexpr uint32_t kThreads = 2;
constexpr uint64_t kNoPlace = uint64_t{1} << 41;  // too long to be placed in time

struct Row {
  uint32_t kernel = 1, path = 0;
};
struct Run {
  size_t first_row = 0, launches = 0;  // rows from 0
};
// Of so many launches something is so, then of so many it is not, and so on.
using Switches = std::vector<uint32_t>;

struct Batch {
  uint32_t thread = 1;
  uint64_t begin = 0;
  std::vector<Run> runs;
  std::vector<int64_t> gaps, durations;  // of each launch
  Switches graph, windowed;
  std::vector<uint32_t> untimed;  // launches
};

struct Program {
  uint32_t kernels = 0;
  std::vector<Row> rows;
  std::vector<Batch> batches;
};

Switches switches(Random& random, size_t launches) {
  Switches all;
  if (below(random, 3) != 0) return all;
  for (size_t left = launches; left > 0;) {
    const auto next = static_cast<uint32_t>(std::min<uint64_t>(left, below(random, 150)));
    all.push_back(next);
    left -= next;
  }
  return all;
}

Program program_of(Random& random, uint32_t kernels, size_t rows) {
  Program p;
  p.kernels = kernels;
  const auto kernel = [&] { return static_cast<uint32_t>(1 + below(random, kernels)); };
  while (p.rows.size() < rows) {
    const auto path = static_cast<uint32_t>(below(random, kPaths + 1));
    for (uint64_t n = 1 + below(random, 60); n > 0; --n) p.rows.push_back({kernel(), path});
  }
  uint64_t now = 1'000'000;
  for (int i = 0; i < 60; ++i) {
    Batch b;
    b.thread = static_cast<uint32_t>(1 + below(random, kThreads));
    b.begin = now += below(random, 2'000'000);
    for (uint64_t runs = 1 + below(random, 12); runs > 0; --runs) {
      const size_t first = below(random, p.rows.size());
      const uint64_t most = below(random, 3) == 0 ? 4 : 400;
      b.runs.push_back({first, std::min(p.rows.size() - first, 1 + below(random, most))});
    }
    size_t launches = 0;
    for (const Run& run : b.runs) launches += run.launches;
    const bool too_long = below(random, 4) == 0;
    for (size_t k = 0; k < launches; ++k) {
      b.gaps.push_back(static_cast<int64_t>(below(random, 2'000)) -
                       (below(random, 200) == 0 ? 1'500 : 0));
      b.durations.push_back(static_cast<int64_t>(
          too_long && below(random, 300) == 0 ? kNoPlace : below(random, 5'000)));
      if (below(random, 100) == 0) b.untimed.push_back(static_cast<uint32_t>(k));
    }
    b.graph = switches(random, launches);
    b.windowed = switches(random, launches);
    p.batches.push_back(std::move(b));
  }
  return p;
}

void add_switches(const Switches& all, google::protobuf::RepeatedField<uint32_t>& runs) {
  for (size_t i = 0; i < all.size(); ++i) {
    runs.Add(static_cast<uint32_t>(i % 2));
    runs.Add(all[i]);
  }
}

// Runs of rows below `patterns` by reference, the others by their names.
void add_batch(TraceBuilder& t, const Program& program, const Batch& batch, size_t patterns) {
  TracePacket p;
  auto& b = *p.mutable_launch_batch();
  b.set_thread(batch.thread);
  b.set_stream(1);
  b.set_first_start_ns(batch.begin);
  std::map<uint32_t, int64_t> last;
  size_t launch = 0, untimed = 0;
  for (const Run& run : batch.runs) {
    const bool named = run.first_row >= patterns;
    if (patterns > 0) {
      b.add_pattern_run(named ? 0 : static_cast<uint32_t>(run.first_row + 1));
      b.add_pattern_run(static_cast<uint32_t>(run.launches));
    }
    for (size_t i = 0; i < run.launches; ++i, ++launch) {
      const Row& row = program.rows[run.first_row + i];
      if (named) {
        b.add_signature(row.kernel);
        b.add_range_path_run(row.path);
        b.add_range_path_run(1);
      }
      b.add_gap_ns(batch.gaps[launch]);
      const bool timed = untimed == batch.untimed.size() || batch.untimed[untimed] != launch;
      b.add_duration_delta_ns(timed ? batch.durations[launch] - last[row.kernel] : 0);
      if (timed) last[row.kernel] = batch.durations[launch];
      if (!timed) ++untimed;
    }
  }
  for (size_t i = 0; i < batch.untimed.size(); ++i)
    b.add_untimed_delta(batch.untimed[i] - (i == 0 ? 0 : batch.untimed[i - 1]));
  add_switches(batch.graph, *b.mutable_graph_run());
  add_switches(batch.windowed, *b.mutable_windowed_run());
  t.add(p);
}

Report report_of(const Program& program, size_t patterns) {
  TraceBuilder t = started();
  t.thread(2, "other");
  const char* const names[kPaths] = {"forward", "backward", "optimizer", "anything"};
  for (uint32_t i = 0; i < kPaths; ++i) t.path(i + 1, 0, names[i]);
  for (uint32_t k = 1; k <= program.kernels; ++k) {
    t.kernel(k, "kernel_" + std::to_string(k), 100 + k);
    if (k % 5 != 0) t.samples(1, k, {sass(1000.0 + k, 0, 0)});
  }
  TracePacket p;
  auto& pattern = *p.mutable_interned()->add_patterns();
  pattern.set_first_row(1);
  for (const Row& row : program.rows) {
    pattern.add_signature(row.kernel);
    pattern.add_range_path_run(row.path);
    pattern.add_range_path_run(1);
  }
  t.add(p);
  for (const Batch& batch : program.batches) add_batch(t, program, batch, patterns);
  t.end();
  return reduce_bytes({t.bytes()});
}

struct Expected {
  uint64_t launches = 0, placed = 0;
  u128 placed_ns = 0, flop = 0;
};

Expected one_by_one(const Program& program) {
  Expected e;
  for (const Batch& batch : program.batches) {
    size_t launch = 0;
    for (const Run& run : batch.runs)
      for (size_t i = 0; i < run.launches; ++i, ++launch) {
        const uint32_t kernel = program.rows[run.first_row + i].kernel;
        ++e.launches;
        if (kernel % 5 != 0) e.flop += 1000 + kernel;
        const auto duration = static_cast<uint64_t>(batch.durations[launch]);
        if (duration == kNoPlace ||
            std::binary_search(batch.untimed.begin(), batch.untimed.end(), launch))
          continue;
        ++e.placed;
        e.placed_ns += duration;
      }
  }
  return e;
}

}  // namespace

TEST_CASE("launches by pattern count as those that are named, each in its phase and at its time") {
  const bool many = GENERATE(false, true);
  Random random(1);
  const Program program = many ? program_of(random, 3'000, 2'000) : program_of(random, 7, 700);
  const Report named = report_of(program, 0);
  // Of more kernels than these not all last durations are cleared after each batch.
  REQUIRE((named.signatures.size() > 1024) == many);
  CHECK(named.damage.empty());
  const Expected expected = one_by_one(program);
  CHECK(named.total.launches == expected.launches);
  CHECK(named.total.flop == expected.flop);
  CHECK(named.time.kernel_ns == expected.placed_ns);
  REQUIRE(named.time.devices.size() == 1);
  CHECK(named.time.devices[0].placed == expected.placed);
  CHECK(named.phases.size() > 2);
  for (const size_t patterns : {size_t{350}, program.rows.size()})
    CHECK(json_text_of(report_of(program, patterns)) == json_text_of(named));
}

// Numbers of any kind: sums wrap alike, and bits show what did not fit.
TEST_CASE("launches are placed in time one by one and several at a time alike") {
  Random random(GENERATE(31, 32, 33));
  for (int round = 0; round < 2'000; ++round) {
    const size_t launches = below(random, 130);
    const unsigned bits = round % 3 == 0 ? 64 : 20;
    const auto number = [&] { return random() >> (64 - bits); };
    std::vector<uint64_t> durations(launches), kernels(launches), sums(launches);
    std::vector<int64_t> gaps(launches);
    for (size_t i = 0; i < launches; ++i) {
      durations[i] = number();
      gaps[i] = static_cast<int64_t>(number() - (below(random, 20) == 0 ? 1'000'000U : 0U));
      kernels[i] = BusyInterval::packed_kernel(static_cast<uint32_t>(below(random, 1'000)));
      sums[i] = number();
    }
    const uint64_t begin = number();
    // By the definition.
    uint64_t now = begin, starts = 0, lengths = 0, total = 0;
    int64_t signs = 0;
    for (size_t i = 0; i < launches; ++i) {
      starts |= now += static_cast<uint64_t>(gaps[i]);
      lengths |= durations[i];
      total += durations[i];
      signs |= gaps[i];
      now += durations[i];
    }
    for (const auto place : {place_rows, place_rows_one_by_one}) {
      std::vector<uint64_t> time_ns = sums;
      std::vector<BusyInterval> intervals(launches + 1, BusyInterval{7, 7});
      Placed placed{.now = begin};
      place({durations.data(), gaps.data(), kernels.data(), time_ns.data(), intervals.data()},
            launches, placed);
      REQUIRE(placed.now == now);
      REQUIRE(placed.start_bits == starts);
      REQUIRE(placed.duration_bits == lengths);
      REQUIRE(placed.gap_bits == signs);
      REQUIRE(placed.duration_ns == total);
      uint64_t ended = begin;
      bool same = intervals.back().begin == 7;  // not touched
      for (size_t i = 0; i < launches; ++i) {
        const uint64_t start = ended + static_cast<uint64_t>(gaps[i]);
        ended = start + durations[i];
        same = same && intervals[i].begin == start &&
               intervals[i].packed == (kernels[i] | durations[i]) &&
               time_ns[i] == sums[i] + durations[i];
      }
      REQUIRE(same);
    }
  }
}
