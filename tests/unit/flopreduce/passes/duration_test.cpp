// How long a kernel's launches took, against a sorted list of them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "catch.h"
#include "passes/rows/kernel_durations.h"
#include "reduce_bytes.h"
#include "sequences.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

using Lists = std::map<std::string, std::vector<uint64_t>>;  // durations by kernel

uint64_t draw(Random& random, uint32_t kernel) {
  const double u = random.uniform();
  switch (kernel) {
    case 1:
      return 4000;  // always
    case 2:
      return static_cast<uint64_t>(1000 + 100'000 * u);
    case 3:  // two clusters
      return u < 0.5 ? 500 : 90'000'000;
    case 4:  // a long tail
      return static_cast<uint64_t>(2000 / (1.0001 - u));
    default:
      return static_cast<uint64_t>(u * 130);  // each has a bucket of its own
  }
}

TraceBuilder named(uint64_t session) {
  TraceBuilder t = started(session);
  for (uint32_t k = 1; k <= 5; ++k) t.kernel(k, "kernel" + std::to_string(k), 50 + k);
  t.kernel(6, "kernel2", 77);  // another shape of it
  return t;
}

// Adds what counts to `lists`.
std::string recording(uint64_t session, size_t launches, Lists& lists) {
  Random random(session);
  TraceBuilder t = named(session);
  for (size_t left = launches; left > 0;) {
    const size_t batch = std::min<size_t>(left, 20'000);
    left -= batch;
    std::vector<TraceBuilder::Launch> list;
    for (size_t i = 0; i < batch; ++i) {
      const auto k = 1 + static_cast<uint32_t>(random.uniform() * 6);
      TraceBuilder::Launch launch{k, static_cast<int64_t>(draw(random, k == 6 ? 2 : k))};
      const double kind = random.uniform();
      if (kind < 0.1) launch.duration_ns = -1;
      launch.windowed = kind > 0.9;
      if (launch.windowed) launch.duration_ns *= 100;
      if (kind >= 0.1 && !launch.windowed)
        lists["kernel" + std::to_string(k == 6 ? 2 : k)].push_back(
            static_cast<uint64_t>(launch.duration_ns));
      list.push_back(launch);
    }
    t.launches(list);
  }
  t.end();
  return t.bytes();
}

Report report_of(const std::vector<std::string>& traces, unsigned jobs = 1) {
  ReduceOptions options;
  options.launch_times = true;
  options.jobs = jobs;
  return reduce_bytes(traces, options);
}

const LaunchTimes& times_of(const Report& report, const std::string& kernel) {
  const auto found = std::ranges::find(report.kernels, kernel, &KernelReport::name);
  REQUIRE(found != report.kernels.end());
  return found->times;
}

double median_of(std::vector<uint64_t> list) {
  std::ranges::sort(list);
  return static_cast<double>(list[(list.size() - 1) / 2] + list[list.size() / 2]) / 2;
}

void check(const Report& report, const Lists& lists) {
  CHECK(report.kernels.size() == lists.size());
  for (const auto& [kernel, list] : lists) {
    CAPTURE(kernel);
    const LaunchTimes& times = times_of(report, kernel);
    CHECK(times.min_ns == *std::ranges::min_element(list));
    CHECK(times.max_ns == *std::ranges::max_element(list));
    REQUIRE(times.median_ns.has_value());
    const double median = median_of(list);
    CHECK(std::abs(*times.median_ns - median) <= 0.008 * median);
  }
}

}  // namespace

TEST_CASE("minimum and maximum of a kernel's launches are exact, the median is within 0.8 %") {
  Lists lists;
  std::vector<std::string> traces;
  for (const size_t launches : {150'000, 1'000, 50'001})
    traces.push_back(recording(traces.size() + 1, launches, lists));
  const Report one = report_of(traces);
  check(one, lists);
  CHECK(json_text_of(report_of(traces, 3)) == json_text_of(one));
  SECTION("without being asked for, they are not known") {
    for (const KernelReport& kernel : reduce_bytes(traces).kernels) {
      CHECK(!kernel.times.min_ns);
      CHECK(!kernel.times.median_ns);
      CHECK(!kernel.times.max_ns);
    }
  }
  SECTION("a summary has them") {
    std::vector<Named> named;
    for (const auto& bytes : traces) named.push_back({"t", bytes});
    const std::string all = merge_bytes(named).bytes;
    check(report_of({all}), lists);
    const std::string some = merge_bytes({named[2], named[0]}).bytes;
    CHECK(merge_bytes({{"some", some}, named[1]}).bytes == all);
    CHECK(merge_bytes({named[1], {"some", some}, {"all", all}}).bytes == all);
  }
}

TEST_CASE("a tally says the shortest and the longest launch, and no median") {
  TraceBuilder t = named(1);
  t.tally({{1, 3, 3, 300, 0, false, 20, 200}, {2, 5, 4, 41, 0, false, 7, 14}});
  t.tally({{1, 0, 1, 10}, {6, 2, 2, 30, 0, false, 15, 15}, {3, 2, 2, 9, 0, true, 1, 8}});
  t.tally({{4, 2, 2, 10, 0, false, 5, 5}, {5, 3, 0, 0}});
  const std::string trace = t.bytes();
  for (const std::string& bytes : {trace, merge_bytes({{"t", trace}}).bytes}) {
    const Report report = report_of({bytes});
    const LaunchTimes& first = times_of(report, "kernel1");
    CHECK(first.min_ns == 10U);  // a time by itself needs no columns
    CHECK(first.max_ns == 200U);
    CHECK(!first.median_ns);
    const LaunchTimes& second = times_of(report, "kernel2");
    CHECK(second.min_ns == 7U);
    CHECK(second.max_ns == 15U);
    CHECK(!times_of(report, "kernel3").min_ns);  // all of it while counters were read
    CHECK(times_of(report, "kernel4").median_ns == 5.0);
    CHECK(!times_of(report, "kernel5").max_ns);
  }
}

TEST_CASE("what an old tally does not say is not known, beside what is") {
  TraceBuilder old = named(1);
  old.tally({{1, 3, 3, 300}, {2, 4, 4, 40}});
  TraceBuilder newer = named(2);
  newer.tally({{1, 3, 3, 300, 0, false, 20, 200}});
  for (const auto& traces :
       {std::vector{old.bytes(), newer.bytes()},
        std::vector{merge_bytes({{"a", newer.bytes()}, {"b", old.bytes()}}).bytes}}) {
    const Report report = report_of(traces);
    for (const char* kernel : {"kernel1", "kernel2"}) {
      CHECK(!times_of(report, kernel).min_ns);
      CHECK(!times_of(report, kernel).median_ns);
      CHECK(!times_of(report, kernel).max_ns);
    }
  }
}

TEST_CASE("a tally's times that cannot be are not known") {
  const auto of = [](uint64_t timed, uint64_t sum, uint64_t below, uint64_t above) {
    return ShortestLongest::of_tally(timed, sum, below, above).any();
  };
  CHECK(of(4, 40, 1, 1));
  CHECK(of(4, 40, 11, 31));
  CHECK(!of(4, 40, 12, 31));  // below 0
  CHECK(!of(4, 40, 11, 32));  // one launch above the sum of all
  CHECK(!of(4, 40, 0, 31));
  CHECK(!of(4, 40, 11, 0));
  CHECK(!of(0, 0, 1, 1));
  CHECK(of(1, 40, 0, 0));
}

void add_launch(Durations& to, size_t kernel, uint64_t ns) {
  to.add(kernel, 1, ShortestLongest::of_one(ns));
  to.add_bucket(kernel, flopinj::step_bucket(ns), 1);
}

TEST_CASE("a median is said where launches of unknown time cannot move it") {
  const auto median = [](uint64_t more) {
    Durations durations(1);
    for (uint64_t i = 0; i < 51; ++i) add_launch(durations, 0, 100);
    for (uint64_t i = 0; i < 50; ++i) add_launch(durations, 0, 50 + i % 2 * 100);
    durations.add(0, more, {.known = false});
    return durations.of(0).median_ns;
  };
  // In order there are 25 of 50, 51 of 100 and 25 of 150.
  CHECK(median(0) == 100.0);
  CHECK(median(50) == 100.0);
  CHECK(!median(52));
}

TEST_CASE("kernels with more durations than there is room for have no median, in any order") {
  constexpr size_t kKernels = Durations::kMostPages / 2 + 1;
  Durations whole(kKernels), first(kKernels), second(kKernels);
  for (size_t k = 0; k < kKernels; ++k)
    for (const uint64_t ns : {uint64_t{1000}, uint64_t{3000}, uint64_t{1000}}) {
      add_launch(whole, k, ns);
      add_launch(k % 2 == 0 ? first : second, k, ns);
    }
  CHECK(whole.full());
  CHECK(!first.full());
  CHECK(first.of(0).median_ns.has_value());
  first.add(second);
  CHECK(first.full());
  for (const size_t k : {size_t{0}, size_t{1}, kKernels - 1})
    for (const Durations* durations : {&whole, &first}) {
      CHECK(durations->of(k).min_ns == 1000U);
      CHECK(durations->of(k).max_ns == 3000U);
      CHECK(!durations->of(k).median_ns);
    }
}

TEST_CASE("the median of an even number of launches is half-way between the two in the middle") {
  Durations durations(1);
  for (const uint64_t ns : {10, 20, 60, 100}) add_launch(durations, 0, ns);
  CHECK(durations.of(0).median_ns == 40.0);
  // Two that lie far apart, and one whose time is not known: it could be either's neighbour.
  durations.add(0, 1, {.known = false});
  CHECK(!durations.of(0).median_ns);
}

TEST_CASE("a GPU time with means in it is marked in every table of every recording") {
  size_t marked = 0;
  for (const char* folder : {"golden", "data/old"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(FLOPINJ_TEST_TRACES) / folder)) {
      if (entry.path().extension() != ".pb") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      ReduceOptions options;
      options.facts = true;
      const auto json =
          json_of(reduce_bytes({std::string(std::istreambuf_iterator<char>(file), {})}, options));
      for (const auto& [table, rows] : json.items())
        for (const auto& row : rows.is_array() ? rows : nlohmann::json::array({rows})) {
          if (!row.is_object() || !row.contains("gpu_time_estimated_launches")) continue;
          const bool estimated = row["gpu_time_estimated_launches"].get<uint64_t>() > 0;
          INFO(entry.path().filename().string() << " " << table << " " << row.dump());
          CHECK(row.value("gpu_time_ns_estimated", false) == estimated);
          marked += estimated;
        }
    }
  CHECK(marked > 100);
}
