// Numbers of ranges, from traces whose sums are known.
#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

constexpr uint32_t kNumbered = 1;
constexpr uint64_t kFlopOfLaunch = 300;  // 100 FFMA, 100 FADD
constexpr uint32_t kData = 1, kForward = 2, kPart = 3, kStep = 4, kTokens = 100, kImages = 101;

struct Given {
  uint32_t path, name;
  uint64_t times, total;
};

flopinj::trace::TracePacket numbers(const std::vector<Given>& all) {
  flopinj::trace::TracePacket p;
  auto& m = *p.mutable_range_numbers();
  for (const Given& g : all) {
    m.add_range_path(g.path);
    m.add_name(g.name);
    m.add_times(g.times);
    m.add_total(g.total);
  }
  return p;
}

// 3 launches in forward, 2 of them in its part; 4 in two steps, 1 in no range.
TraceBuilder trace_of(uint64_t session = 1) {
  TraceBuilder t = started(session);
  t.kernel(kNumbered, "kernel", 11);
  t.string(kTokens, "tokens");
  t.string(kImages, "images");
  t.path(kData, 0, "data");
  t.path(kForward, 0, "forward");
  t.path(kPart, kForward, "part");
  t.path(kStep, 0, "step");
  t.samples(1, kNumbered, {sass(100, 0, 100), sass(100, 0, 100)});
  std::vector<TraceBuilder::Launch> launches(8, {.signature = kNumbered, .duration_ns = 10});
  launches[0].path = kForward;
  launches[1].path = launches[2].path = kPart;
  launches[3].path = launches[4].path = launches[5].path = launches[6].path = kStep;
  launches[3].step = launches[4].step = 1;
  launches[5].step = launches[6].step = 2;
  t.launches(launches);
  t.steps({{1, 1000, 50}, {2, 2000, 50}}, kStep);
  return t;
}

const NumberReport& of(const Report& report, std::string_view name) {
  for (const NumberReport& number : report.numbers)
    if (number.name == name) return number;
  FAIL("no such number");
  return report.numbers.front();
}

const NumberReport::InRange& in(const NumberReport& number, std::string_view range) {
  for (const auto& one : number.ranges)
    if (one.range == range) return one;
  FAIL("not in that range");
  return number.ranges.front();
}

void check(const Report& report, uint64_t processes) {
  REQUIRE(report.numbers.size() == 2);
  const NumberReport& tokens = of(report, "tokens");
  CHECK(tokens.processes == processes);
  CHECK(tokens.total == processes * (40 + 60 + 20));  // those of part are of forward too
  const double all = 8 * kFlopOfLaunch * static_cast<double>(processes);
  CHECK(tokens.flop_each == all / static_cast<double>(tokens.total));
  CHECK(!in(tokens, "data").flop_each);  // nothing was launched there
  CHECK(in(tokens, "forward").flop_each == 3 * kFlopOfLaunch / 60.0);
  CHECK(in(tokens, "forward").times == processes * 3);
  CHECK(!in(tokens, "forward/part").outermost);
  CHECK(in(tokens, "forward/part").flop_each == 2 * kFlopOfLaunch / 15.0);
  CHECK(in(tokens, "step").step);
  CHECK(in(tokens, "step").flop_each == 4 * kFlopOfLaunch / 20.0);
  const NumberReport& images = of(report, "images");
  CHECK(images.total == 0);
  CHECK(!images.flop_each);  // of none
  CHECK(in(images, "").times == processes);
}

std::string numbered(uint64_t session = 1) {
  TraceBuilder t = trace_of(session);
  t.add(numbers({{kData, kTokens, 1, 1}, {kPart, kTokens, 1, 1}}));  // replaced by the next
  t.add(numbers({{kData, kTokens, 2, 40},
                 {kForward, kTokens, 3, 60},
                 {kPart, kTokens, 2, 15},
                 {kStep, kTokens, 2, 20},
                 {0, kImages, 1, 0}}));
  t.end();
  return t.bytes();
}

}  // namespace

TEST_CASE("numbers: FLOP for each of all launches, of those in the range, and of steps") {
  check(reduce_bytes({numbered()}), 1);
  check(reduce_bytes({numbered(1), numbered(2)}), 2);
}

TEST_CASE("numbers: a summary keeps them") {
  check(reduce_bytes({merge_bytes({{"a.pb", numbered()}}).bytes}), 1);
}

TEST_CASE("numbers: of steps that were not all given one, no FLOP for each is said") {
  TraceBuilder t = trace_of();
  t.add(numbers({{kStep, kTokens, 1, 20}}));
  t.end();
  CHECK(!in(of(reduce_bytes({t.bytes()}), "tokens"), "step").flop_each);
}

TEST_CASE("numbers: with unmeasured launches the figure is a lower bound") {
  TraceBuilder t = trace_of();
  t.kernel(2, "unmeasured", 12);
  t.launches({{.signature = 2, .duration_ns = 10, .path = kForward}});
  t.add(numbers({{kForward, kTokens, 1, 60}}));
  t.end();
  const auto report = reduce_bytes({t.bytes()});
  CHECK(in(of(report, "tokens"), "forward").flop_each == 3 * kFlopOfLaunch / 60.0);
  CHECK(in(of(report, "tokens"), "forward").at_least);
}

TEST_CASE("numbers: where no launch with FLOP was measured nothing is said, and not 0") {
  TraceBuilder t = started();
  t.kernel(kNumbered, "without", 11);
  t.kernel(2, "unmeasured", 12);
  t.string(kTokens, "tokens");
  t.path(kForward, 0, "forward");
  t.samples(1, kNumbered, {sass(0, 0, 0), sass(0, 0, 0)});
  t.launches({{.signature = kNumbered, .duration_ns = 10, .path = kForward},
              {.signature = 2, .duration_ns = 10, .path = kForward}});
  t.add(numbers({{kForward, kTokens, 1, 60}}));
  t.end();
  const auto report = reduce_bytes({t.bytes()});
  CHECK(!of(report, "tokens").flop_each);
  CHECK(!in(of(report, "tokens"), "forward").flop_each);
}

TEST_CASE("numbers: messages that cannot be are logged, and the rest is used") {
  TraceBuilder t = trace_of();
  t.add(numbers({{77, kTokens, 1, 5}, {kData, 78, 1, 6}}));
  auto bad = numbers({{kData, kTokens, 1, 1000}});
  bad.mutable_range_numbers()->add_total(1);
  t.add(bad);
  t.end();
  const auto report = reduce_bytes({t.bytes()});
  CHECK(damage_of(report, Damage::kBadColumns) == 1);
  CHECK(damage_of(report, Damage::kUndefinedId) == 2);
  CHECK(of(report, "tokens").total == 5);
  CHECK(of(report, "(lost name)").total == 6);
}
