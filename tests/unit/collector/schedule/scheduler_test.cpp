#include <collector/schedule/measuring_budget.h>
#include <collector/schedule/sampled_signature.h>
#include <collector/schedule/scheduler.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "catch.h"

using namespace flopinj;

namespace {

constexpr uint32_t kMaxPlannedDevices = 64;
constexpr DeviceId kGpu0{1}, kGpu1{2};
constexpr uint32_t kScreening = 0, kSass = 1;

std::vector<MetricGroupPlan> two_groups() {
  return {{"screening", {"b"}, false, false}, {"sass", {"a"}, true, true}};
}

SchedulerConfig unlimited() {
  SchedulerConfig config;
  config.budget = MeasuringBudget::kUnlimited;
  return config;
}

struct Fixture {
  SignatureTable table;
  SchedulerConfig config = unlimited();
  MeasurementScheduler scheduler{config, table};

  const Signature& signature(const std::string& name, uint32_t grid = 1) {
    FunctionInfo info;
    info.name = name;
    info.parameters_known = true;
    LaunchShape shape;
    shape.grid[0] = grid;
    return *table.intern_signature(*table.intern_function(info), shape, 0,
                                   scheduler.initial_wanted());
  }
  // The group that a launch with no window open would open one for.
  std::optional<uint32_t> wants(DeviceId device, const Signature& s) {
    return scheduler.decide(device, s, nullptr, 0).open;
  }
  static MeasurementWindow window(DeviceId device, uint32_t group,
                                  const std::vector<const Signature*>& signatures) {
    MeasurementWindow w;
    w.device = device;
    w.group = group;
    w.together = GroupSet(group);
    for (const Signature* s : signatures) w.rows.push_back({s, {}, 0, true, 0});
    return w;
  }
  void succeed(DeviceId device, uint32_t group, std::vector<const Signature*> signatures,
               std::vector<double> values = {}) {
    if (values.empty()) values.assign(signatures.size(), 1);
    scheduler.window_succeeded(window(device, group, signatures), values);
  }
  void fail(DeviceId device, uint32_t group, std::vector<const Signature*> signatures) {
    scheduler.window_failed(window(device, group, signatures));
  }
  // First samples, all at once.
  void complete(DeviceId device, const Signature& s) {
    for (uint32_t g : {kScreening, kSass})
      for (uint32_t i = 0; i < config.first_samples; ++i) succeed(device, g, {&s});
  }
  bool add(MeasurementWindow& w, const Signature& s, bool chosen = true, uint64_t now = 0) {
    return scheduler.row_added(w, {&s, {}, 0, chosen, 0}, now);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "scheduler: a plan gives its groups ids and reaches every signature") {
  const Signature& before = signature("before");
  CHECK(scheduler.initial_wanted() == 0);
  CHECK_FALSE(scheduler.may_want(kGpu0, before));
  CHECK(wants(kGpu0, before) == std::nullopt);
  CHECK(scheduler.add_plan(kGpu0, "GH100", two_groups()) == std::vector{GroupId{1}, GroupId{2}});
  CHECK(scheduler.add_plan(kGpu1, "GA100", two_groups()) == std::vector{GroupId{3}, GroupId{4}});
  CHECK(scheduler.add_plan(kGpu0, "GH100", two_groups()) == std::vector{GroupId{1}, GroupId{2}});
  CHECK(scheduler.initial_wanted() == 0b1111);
  CHECK(before.wanted_groups == 0b1111);
  CHECK(signature("after").wanted_groups == 0b1111);
  CHECK(wants(kGpu0, before) == kScreening);
  CHECK(wants(kGpu1, before) == kScreening);
  CHECK(wants(DeviceId{3}, before) == std::nullopt);
  CHECK_FALSE(scheduler.may_want(DeviceId{4'000'000}, before));
}

TEST_CASE_METHOD(Fixture, "scheduler: every group once before any twice, there and back") {
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  const Signature& s = signature("s");
  for (const uint32_t group : {kScreening, kSass, kSass, kScreening, kScreening, kSass}) {
    CHECK(scheduler.may_want(kGpu0, s));
    CHECK(wants(kGpu0, s) == group);
    succeed(kGpu0, group, {&s});
  }
  CHECK(wants(kGpu0, s) == std::nullopt);
  CHECK(s.wanted_groups == 0);
  CHECK(scheduler.windows_opened() == 6);
  CHECK(scheduler.windows_discarded() == 0);
}

TEST_CASE_METHOD(Fixture, "scheduler: chips are measured each for itself") {
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  scheduler.add_plan(kGpu1, "GA100", two_groups());
  const Signature& s = signature("s");
  complete(kGpu1, s);
  CHECK_FALSE(scheduler.may_want(kGpu1, s));
  CHECK(wants(kGpu0, s) == kScreening);
  scheduler.disable(kGpu0);
  CHECK_FALSE(scheduler.may_want(kGpu0, s));
  const Signature& other = signature("new");
  CHECK(other.wanted_groups == 0b1100);
  CHECK(wants(kGpu1, other) == kScreening);
  scheduler.disable(kGpu1);
  CHECK(other.wanted_groups == 0);
  CHECK(signature("newer").wanted_groups == 0);
  CHECK(scheduler.initial_wanted() == 0);
}

TEST_CASE_METHOD(Fixture, "scheduler: devices of one chip with other metrics are measured apart") {
  std::vector<MetricGroupPlan> fewer = two_groups(), none = two_groups();
  fewer[0].metrics = {"c"};
  none[0].unavailable = "this slice lacks it";
  CHECK(scheduler.add_plan(kGpu0, "GH100", two_groups()) == std::vector{GroupId{1}, GroupId{2}});
  CHECK(scheduler.add_plan(kGpu1, "GH100", fewer) == std::vector{GroupId{3}, GroupId{4}});
  CHECK(scheduler.add_plan(DeviceId{3}, "GH100", none) == std::vector{GroupId{}, GroupId{5}});
  CHECK(scheduler.initial_wanted() == 0b11111);
  const Signature& s = signature("s");
  complete(kGpu0, s);
  CHECK_FALSE(scheduler.may_want(kGpu0, s));
  CHECK(wants(kGpu1, s) == kScreening);
  CHECK(wants(DeviceId{3}, s) == 0U);  // its only group
}

TEST_CASE("scheduler: a trial says what windows cost, costs nothing itself and is no window") {
  SchedulerConfig config;  // 1 %: 2 s at the start
  SignatureTable table;
  MeasurementScheduler scheduler{config, table};
  scheduler.begin(0, 1);
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  CHECK(scheduler.affords_window(kGpu0, kSass, 0));
  MeasurementWindow trial = Fixture::window(kGpu0, kSass, {});
  trial.trial = true;
  trial.cost.overhead_ns = 3'000'000'000;
  scheduler.window_succeeded(trial, {});
  CHECK(scheduler.spent_ns() == 0);
  CHECK(scheduler.windows_opened() == 0);
  CHECK_FALSE(scheduler.affords_window(kGpu0, kSass, 0));
  CHECK(scheduler.affords_window(kGpu0, kSass, 100'000'000'000));
  scheduler.window_unread(trial);
  CHECK(scheduler.windows_discarded() == 0);
}

TEST_CASE_METHOD(Fixture, "scheduler: devices of one chip share what is known of a kernel") {
  for (uint32_t d = 1; d <= kMaxPlannedDevices; ++d)
    CHECK(scheduler.add_plan(DeviceId{d}, "GH100", two_groups()) ==
          std::vector{GroupId{2 * d - 1}, GroupId{2 * d}});
  CHECK(scheduler.add_plan(DeviceId{kMaxPlannedDevices + 1}, "GH100", two_groups()).empty());
  CHECK(scheduler.initial_wanted() == 0b11);
  const Signature& s = signature("s");
  // A sample of each, from eight devices in turn, is all there is to take.
  const uint32_t groups[] = {kScreening, kSass, kSass, kScreening, kScreening, kSass};
  for (uint32_t d = 0; d < 6; ++d) {
    CHECK(wants(DeviceId{d + 1}, s) == groups[d]);
    succeed(DeviceId{d + 1}, groups[d], {&s});
  }
  CHECK(s.wanted_groups == 0);
  // What fails on one device goes on on the others, until all have failed.
  const Signature& other = signature("other");
  for (uint32_t d = 1; d < kMaxPlannedDevices; ++d) scheduler.disable(DeviceId{d});
  CHECK_FALSE(scheduler.may_want(kGpu0, other));
  CHECK(wants(DeviceId{kMaxPlannedDevices}, other) == kScreening);
  scheduler.disable(DeviceId{kMaxPlannedDevices});
  CHECK(other.wanted_groups == 0);
  CHECK(scheduler.initial_wanted() == 0);
}

TEST_CASE_METHOD(Fixture, "scheduler: all bits can be used, and no more") {
  const auto chip = [](uint32_t n) { return "chip " + std::to_string(n); };
  uint32_t planned = 0;
  for (uint32_t d = 1; d <= 40; ++d)
    planned += !scheduler.add_plan(DeviceId{d}, chip(d), two_groups()).empty();
  CHECK(planned == kMaxGroups / 2);
  CHECK(scheduler.initial_wanted() == ~uint64_t{0});
  const Signature& s = signature("s");
  const DeviceId last{kMaxGroups / 2};
  CHECK(wants(last, s) == kScreening);
  complete(last, s);
  CHECK(s.wanted_groups == ~uint64_t{0} >> 2);
  CHECK(wants(DeviceId{kMaxGroups / 2 + 1}, s) == std::nullopt);
  SignatureTable other;
  MeasurementScheduler fresh(unlimited(), other);
  const std::vector<MetricGroupPlan> most(kMaxGroups), too_many(kMaxGroups + 1);
  CHECK(fresh.add_plan(kGpu0, "GH100", most).size() == kMaxGroups);
  CHECK(fresh.initial_wanted() == ~uint64_t{0});
  MeasurementScheduler small(unlimited(), other);
  CHECK(small.add_plan(kGpu0, "GH100", too_many).empty());
  CHECK(small.add_plan(kGpu0, "GH100", {}).empty());
  CHECK(small.add_plan(DeviceId{}, "GH100", two_groups()).empty());
}

TEST_CASE_METHOD(Fixture, "scheduler: a group with conditions is measured where screening asks") {
  // Screening reads three columns; `half` is part of `hmma`.
  scheduler.add_plan(kGpu0, "GH100",
                     {{"screening", {"hmma", "half", "imma"}},
                      {"fp16", {"f"}, false, false, {{"hmma", "half"}}},
                      {"int8", {"i"}, false, false, {{"other", ""}, {"imma", ""}}},
                      {"sass", {"a"}, true, true}});
  constexpr uint32_t kFp16 = 1;
  const Signature &plain = signature("plain"), &half = signature("half"), &gemm = signature("gemm"),
                  &both = signature("both");
  CHECK(scheduler.initial_wanted() == 0b1001);
  CHECK(plain.wanted_groups == 0b1001);
  succeed(kGpu0, kScreening, {&plain, &half, &gemm, &both}, {0, 0, 0, 7, 7, 0, 8, 7, 0, 1, 0, 1});
  CHECK(plain.wanted_groups == 0b1001);
  CHECK(half.wanted_groups == 0b1001);
  CHECK(gemm.wanted_groups == 0b1011);
  CHECK(both.wanted_groups == 0b1111);
  // What it needs comes before the instrumented group.
  CHECK(wants(kGpu0, gemm) == kFp16);
  CHECK(wants(kGpu0, plain) == 3);
  succeed(kGpu0, kFp16, {&gemm});
  CHECK(wants(kGpu0, gemm) == 3);
  // Given up, and not asked for again.
  for (uint32_t i = 0; i < config.max_failures; ++i) fail(kGpu0, kFp16, {&both});
  succeed(kGpu0, kScreening, {&both}, {1, 0, 1});
  CHECK(both.wanted_groups == 0b1101);
  scheduler.disable(kGpu0);
  succeed(kGpu0, kScreening, {&half}, {8, 7, 1});
  CHECK(half.wanted_groups == 0);
}

TEST_CASE_METHOD(Fixture, "scheduler: conditions that nothing reads hold for every kernel") {
  scheduler.add_plan(kGpu0, "GH100",
                     {{"fp16", {"f"}, false, false, {{"hmma", ""}}}, {"sass", {"a"}, true, true}});
  CHECK(signature("s").wanted_groups == 0b11);
}

TEST_CASE_METHOD(Fixture, "scheduler: collectives and graphs end a window and never start one") {
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  const Signature& collective = signature("ncclDevKernel_AllReduce");
  CHECK_FALSE(scheduler.may_want(kGpu0, collective));
  CHECK(wants(kGpu0, collective) == std::nullopt);
  CHECK(scheduler.close_before(&collective));
  CHECK(scheduler.close_before(nullptr));
  CHECK_FALSE(scheduler.close_before(&signature("s")));
}

TEST_CASE_METHOD(Fixture, "scheduler: a window closes when it is full or has been open too long") {
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  MeasurementWindow w = window(kGpu0, kScreening, {});
  for (uint32_t i = 1; i < config.max_ranges; ++i) CHECK_FALSE(add(w, signature("s", i)));
  CHECK(add(w, signature("s", config.max_ranges)));
  MeasurementWindow old = window(kGpu0, kScreening, {});
  old.opened_ns = 100;
  CHECK_FALSE(add(old, signature("t"), true, 99));  // clocks may step back
  CHECK_FALSE(add(old, signature("t"), true, 100 + config.max_open_ns - 1));
  CHECK(add(old, signature("t"), true, 100 + config.max_open_ns));
}

TEST_CASE_METHOD(Fixture, "scheduler: a window closes when nobody has wanted it for a while") {
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  MeasurementWindow w = window(kGpu0, kScreening, {});
  const Signature& known = signature("known");
  complete(kGpu0, known);
  CHECK_FALSE(add(w, signature("fresh")));
  for (uint32_t i = 1; i < config.idle_launches; ++i) CHECK_FALSE(add(w, known, false));
  CHECK_FALSE(add(w, signature("fresher")));
  for (uint32_t i = 1; i < config.idle_launches; ++i) CHECK_FALSE(add(w, known, false));
  CHECK(add(w, known, false));
}

TEST_CASE_METHOD(Fixture, "scheduler: a window gives way when its first kernel comes again") {
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  const Signature &a = signature("a"), &b = signature("b"), &c = signature("c");
  MeasurementWindow w = window(kGpu0, kScreening, {});
  for (const Signature* s : {&a, &b, &c}) {
    CHECK(scheduler.decide(kGpu0, *s, &w, 0).chosen);
    CHECK_FALSE(add(w, *s));
  }
  // b again, in the same step: it wants its instructions counted, and waits.
  const LaunchDecision again = scheduler.decide(kGpu0, b, &w, 0);
  CHECK_FALSE(again.chosen);
  CHECK_FALSE(again.close);
  CHECK_FALSE(add(w, b, false));
  // Nothing else comes between.
  CHECK(scheduler.decide(kGpu0, b, &w, 0).close);
  // The next step begins.
  const LaunchDecision next = scheduler.decide(kGpu0, a, &w, 0);
  CHECK(next.close);
  CHECK_FALSE(next.open);
  scheduler.window_succeeded(w, std::vector<double>(w.rows.size(), 1));
  CHECK(wants(kGpu0, a) == kSass);
  // Or when others have wanted another group for a while.
  MeasurementWindow stuck = window(kGpu0, kScreening, {&c});
  stuck.unchosen = config.switch_launches - 1;
  CHECK_FALSE(scheduler.decide(kGpu0, a, &stuck, 0).close);
  stuck.unchosen = config.switch_launches;
  CHECK(scheduler.decide(kGpu0, a, &stuck, 0).close);
}

TEST_CASE_METHOD(Fixture, "scheduler: a signature whose windows keep failing is given up") {
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  const Signature& s = signature("s");
  const Signature& other = signature("other");
  fail(kGpu0, kScreening, {&s, &s, &s});  // one failure, however often it was in it
  fail(kGpu0, kScreening, {&s});
  CHECK(wants(kGpu0, s) == kScreening);
  succeed(kGpu0, kScreening, {&s});  // not in a row
  fail(kGpu0, kSass, {&s});
  fail(kGpu0, kSass, {&s});
  CHECK(wants(kGpu0, s) == kSass);
  fail(kGpu0, kSass, {&s, &other});
  CHECK(wants(kGpu0, s) == kScreening);
  CHECK(wants(kGpu0, other) == kScreening);
  CHECK(scheduler.windows_opened() == 6);
  CHECK(scheduler.windows_discarded() == 5);
}

TEST_CASE_METHOD(Fixture, "scheduler: one bad kernel does not take its neighbours with it") {
  // The edge's loop: kernels launched in turn, windows as the scheduler wants them; a window with
  // `bad` in it fails.
  scheduler.add_plan(kGpu0, "GH100", {{"sass", {"a"}, true, true}});
  const Signature& bad = signature("bad");
  std::vector<const Signature*> program;
  for (uint32_t i = 0; i < 10; ++i) program.push_back(&signature("good", i + 1));
  program.insert(program.begin() + 4, &bad);
  std::map<const Signature*, uint32_t> samples;
  std::optional<MeasurementWindow> open;
  const auto close = [&] {
    bool failed = false;
    for (const WindowRow& row : open->rows) failed |= row.signature == &bad;
    if (failed)
      scheduler.window_failed(*open);
    else
      scheduler.window_succeeded(*open, std::vector<double>(open->rows.size(), 1));
    for (const WindowRow& row : open->rows)
      if (!failed && row.chosen) ++samples[row.signature];
    open.reset();
  };
  for (uint32_t step = 0; step < 40; ++step)
    for (const Signature* s : program) {
      LaunchDecision d = scheduler.decide(kGpu0, *s, open ? &*open : nullptr, 0);
      if (d.close) {
        close();
        if (!d.open) d = scheduler.decide(kGpu0, *s, nullptr, 0);
      }
      if (d.open) open = window(kGpu0, *d.open, {});
      if (open && add(*open, *s, d.chosen)) close();
    }
  if (open) close();
  for (const Signature* s : program) {
    CHECK(s->wanted_groups == 0);
    CHECK(samples[s] == (s == &bad ? 0 : config.first_samples));
  }
}

TEST_CASE_METHOD(Fixture, "scheduler: a group whose windows cannot be opened is given up") {
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  const Signature& s = signature("s");
  for (uint32_t i = 0; i < config.max_failures; ++i) {
    CHECK(wants(kGpu0, s) == kScreening);
    fail(kGpu0, kScreening, {});
  }
  CHECK(wants(kGpu0, s) == kSass);
  CHECK(signature("new").wanted_groups == 0b10);
  MeasurementWindow w = window(kGpu0, kScreening, {});
  CHECK(add(w, s));
  fail(kGpu0, 17, {&s});  // no such group
  succeed(DeviceId{9}, 0, {&s});
  CHECK(wants(kGpu0, s) == kSass);
}

TEST_CASE_METHOD(Fixture, "scheduler: a row that says nothing is neither a sample nor a failure") {
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  const Signature& s = signature("s");
  succeed(kGpu0, kScreening, {&s});
  for (uint32_t i = 0; i < 2 * config.max_failures; ++i) {
    CHECK(wants(kGpu0, s) == kSass);
    MeasurementWindow w = window(kGpu0, kSass, {});
    add(w, s);
    CHECK(wants(kGpu0, s) == kSass);  // the second of sass comes before the second of screening
    w.rows.back().unread = true;
    scheduler.window_succeeded(w, std::vector<double>{0});
  }
  CHECK(wants(kGpu0, s) == kSass);
  CHECK_FALSE(scheduler.varying(kGpu0, s.id));
}

TEST_CASE_METHOD(Fixture,
                 "scheduler: a group that can never be read of a kernel is not asked for") {
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  const Signature& s = signature("s");
  const Signature& other = signature("other");
  scheduler.cannot_measure(kGpu0, s, kSass);
  for (uint32_t i = 0; i < config.first_samples; ++i) {
    CHECK(wants(kGpu0, s) == kScreening);
    succeed(kGpu0, kScreening, {&s});
  }
  CHECK(s.wanted_groups == 0);
  succeed(kGpu0, kScreening, {&other});
  CHECK(wants(kGpu0, other) == kSass);
}

TEST_CASE_METHOD(Fixture, "scheduler: a group that cannot be read of some launches is given up") {
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  const Signature &never = signature("never"), &at_times = signature("at times");
  for (uint32_t i = 0; i < config.max_failures; ++i) {
    CHECK(((never.wanted_groups >> kSass) & 1) == 1);
    scheduler.cannot_measure_launch(kGpu0, never, kSass);
  }
  CHECK(((never.wanted_groups >> kSass) & 1) == 0);
  CHECK(never.wanted_groups != 0);  // the other group
  // A launch that can be read starts the count anew.
  for (uint32_t i = 0; i + 1 < config.max_failures; ++i)
    scheduler.cannot_measure_launch(kGpu0, at_times, kSass);
  succeed(kGpu0, kSass, {&at_times});
  for (uint32_t i = 0; i + 1 < config.max_failures; ++i)
    scheduler.cannot_measure_launch(kGpu0, at_times, kSass);
  CHECK(((at_times.wanted_groups >> kSass) & 1) == 1);
}

namespace {

constexpr uint32_t kPipes = 2;
std::vector<MetricGroupPlan> bounded_groups() {
  auto groups = two_groups();
  groups.push_back({"pipes", {"c"}});
  groups.back().instead_of = "sass";
  return groups;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "scheduler: kernels that a group cannot be read of have its bound read") {
  scheduler.add_plan(kGpu0, "GH100", bounded_groups());
  const Signature &large = signature("large"), &small = signature("small");
  CHECK(large.wanted_groups == 0b011);
  scheduler.cannot_measure(kGpu0, large, kSass);
  CHECK(large.wanted_groups == 0b101);
  for (const uint32_t group : {kScreening, kPipes, kPipes, kScreening, kScreening, kPipes}) {
    CHECK(wants(kGpu0, large) == group);
    succeed(kGpu0, group, {&large});
  }
  CHECK(large.wanted_groups == 0);
  CHECK(small.wanted_groups == 0b011);
  complete(kGpu0, small);
  CHECK(small.wanted_groups == 0);

  // Windows that fail of one kernel are no other case.
  const Signature& failing = signature("failing");
  for (uint32_t i = 0; i < config.max_failures; ++i) fail(kGpu0, kSass, {&failing});
  CHECK(failing.wanted_groups == 0b101);
  // A count that is there needs no bound.
  const Signature& counted = signature("counted");
  succeed(kGpu0, kSass, {&counted});
  scheduler.cannot_measure(kGpu0, counted, kSass);
  CHECK(counted.wanted_groups == 0b001);
}

TEST_CASE_METHOD(Fixture, "scheduler: while a group is paused its bound is read, and then both") {
  scheduler.add_plan(kGpu0, "GH100", bounded_groups());
  const Signature &known = signature("known"), &counted = signature("counted");
  succeed(kGpu0, kScreening, {&known});
  succeed(kGpu0, kSass, {&counted});
  scheduler.pause(kGpu0, kSass);
  CHECK(wants(kGpu0, known) == kPipes);
  const Signature& later = signature("later");
  CHECK(wants(kGpu0, later) == kScreening);
  succeed(kGpu0, kScreening, {&later});
  CHECK(wants(kGpu0, later) == kPipes);
  CHECK((counted.wanted_groups & 0b100) == 0);
  scheduler.resume(kGpu0, kSass);
  succeed(kGpu0, kPipes, {&known});
  CHECK(wants(kGpu0, known) == kSass);
}

TEST_CASE_METHOD(Fixture, "scheduler: a group that no device reads any more has its bound read") {
  scheduler.add_plan(kGpu0, "GH100", bounded_groups());
  scheduler.add_plan(kGpu1, "GH100", bounded_groups());
  const Signature &known = signature("known"), &counted = signature("counted");
  succeed(kGpu0, kScreening, {&known});
  complete(kGpu0, counted);
  scheduler.disable(kGpu0, kSass);
  CHECK((known.wanted_groups & 0b100) == 0);  // the other device has it still
  scheduler.disable(kGpu1, kSass);
  CHECK(wants(kGpu0, known) == kPipes);
  CHECK(wants(kGpu0, counted) == std::nullopt);
  const Signature& later = signature("later");
  CHECK(later.wanted_groups == 0b101);
  for (uint32_t i = 0; i < config.first_samples; ++i)
    for (const uint32_t group : {kScreening, kPipes}) succeed(kGpu1, group, {&later});
  CHECK(wants(kGpu1, later) == std::nullopt);
}

namespace {

// Screening reads three columns; `half` is part of `hmma`.
constexpr uint32_t kFp16 = 1, kInt8 = 2, kLast = 3;
std::vector<MetricGroupPlan> screened_groups() {
  return {{"screening", {"hmma", "half", "imma"}},
          {"fp16", {"f"}, false, false, {{"hmma", "half"}}},
          {"int8", {"i"}, false, false, {{"imma", ""}}},
          {"sass", {"a"}, true, true}};
}

}  // namespace

TEST_CASE_METHOD(Fixture, "scheduler: without screening every group with conditions is measured") {
  scheduler.add_plan(kGpu0, "GH100", screened_groups());
  const Signature &plain = signature("plain"), &gemm = signature("gemm"), &fresh = signature("f");
  succeed(kGpu0, kScreening, {&plain, &gemm}, {0, 0, 0, 9, 0, 0});
  scheduler.disable(kGpu0, kScreening);
  const Signature& later = signature("later");
  CHECK(wants(kGpu0, fresh) == kFp16);
  CHECK(wants(kGpu0, later) == kFp16);
  for (const Signature* s : {&fresh, &later}) CHECK(s->wanted_groups == 0b1110);
  // What screening has said still holds.
  CHECK(plain.wanted_groups == 0b1000);
  CHECK(gemm.wanted_groups == 0b1010);

  LaunchProgress seen{kGpu0, fresh.id, 10, 10};
  scheduler.progress({&seen, 1}, 0, 0, 1);
  for (const uint32_t group : {kFp16, kInt8, kLast}) {
    CHECK(scheduler.coverage().covered_launches == 0);
    succeed(kGpu0, group, {&fresh});
  }
  CHECK(scheduler.coverage().covered_launches == 10);
}

TEST_CASE_METHOD(Fixture, "scheduler: while screening is paused kernels are taken to need all") {
  scheduler.add_plan(kGpu0, "GH100", screened_groups());
  const Signature &before = signature("before"), &known = signature("known");
  succeed(kGpu0, kScreening, {&known}, {0, 0, 1});
  scheduler.pause(kGpu0, kScreening);
  const Signature& meanwhile = signature("meanwhile");
  CHECK(wants(kGpu0, before) == kFp16);
  CHECK(wants(kGpu0, meanwhile) == kFp16);
  CHECK(known.wanted_groups == 0b1101);  // as screening has said
  succeed(kGpu0, kFp16, {&meanwhile});
  scheduler.resume(kGpu0, kScreening);
  CHECK(before.wanted_groups == 0b1001);
  CHECK(wants(kGpu0, before) == kScreening);
  succeed(kGpu0, kScreening, {&before, &meanwhile}, {9, 9, 0, 9, 0, 0});
  CHECK(before.wanted_groups == 0b1001);     // no tensor work
  CHECK(meanwhile.wanted_groups == 0b1011);  // it had been right to look
}

TEST_CASE_METHOD(Fixture, "scheduler: a kernel that cannot be screened needs every group") {
  auto groups = screened_groups();
  groups.push_back({"fp4", {"x"}, false, false, {{"hmma", ""}}});
  groups.back().unavailable = "CUPTI does not know it";
  scheduler.add_plan(kGpu0, "GH100", groups);
  const Signature &odd = signature("odd"), &other = signature("other");
  LaunchProgress seen{kGpu0, odd.id, 10, 10};
  scheduler.progress({&seen, 1}, 0, 0, 1);
  CHECK(scheduler.coverage().unmeasurable_launches == 0);
  for (uint32_t i = 0; i < config.max_failures; ++i) fail(kGpu0, kScreening, {&odd});
  CHECK(odd.wanted_groups == 0b1110);
  CHECK(other.wanted_groups == 0b1001);
  // It may need a group that cannot be measured here.
  CHECK(scheduler.coverage().unmeasurable_launches == 10);
}

TEST_CASE_METHOD(Fixture, "scheduler: screening that one of two devices lacks is no answer there") {
  scheduler.add_plan(kGpu0, "GH100", screened_groups());
  scheduler.add_plan(kGpu1, "GH100", screened_groups());
  const Signature& s = signature("s");
  scheduler.disable(kGpu1, kScreening);
  CHECK(wants(kGpu1, s) == kFp16);
  CHECK(wants(kGpu0, s) == kScreening);
  succeed(kGpu0, kScreening, {&s}, {0, 0, 0});
  CHECK(wants(kGpu1, s) == kLast);
  // A device that is not measured at all says nothing of others.
  scheduler.disable(kGpu1);
  const Signature& later = signature("later");
  CHECK(wants(kGpu0, later) == kScreening);
  CHECK(later.wanted_groups == 0b1001);
}

TEST_CASE("scheduler: in mode full a pause, and a refusal for good, are of all groups") {
  SignatureTable table;
  SchedulerConfig config;
  config.every_launch = true;
  MeasurementScheduler scheduler(config, table);
  scheduler.add_plan(kGpu0, "GH100", screened_groups());
  FunctionInfo info;
  info.name = "f";
  const Signature& s =
      *table.intern_signature(*table.intern_function(info), {}, 0, scheduler.initial_wanted());
  scheduler.pause(kGpu0, 0);
  CHECK_FALSE(scheduler.may_want(kGpu0, s));
  scheduler.resume(kGpu0, 0);
  CHECK(scheduler.decide(kGpu0, s, nullptr, 0).open == 0);
  scheduler.disable(kGpu0, 0);
  CHECK_FALSE(scheduler.may_want(kGpu0, s));
}

TEST_CASE("scheduler: mode full measures every launch, all groups at once") {
  SignatureTable table;
  SchedulerConfig config;  // whatever the budget
  config.every_launch = true;
  MeasurementScheduler scheduler(config, table);
  scheduler.add_plan(kGpu0, "GH100", two_groups());
  FunctionInfo info;
  info.name = "f";
  const Signature& s =
      *table.intern_signature(*table.intern_function(info), {}, 0, scheduler.initial_wanted());
  for (int i = 0; i < 3; ++i) {
    CHECK(scheduler.decide(kGpu0, s, nullptr, 0).open == 0);
    MeasurementWindow w;
    w.device = kGpu0;
    w.together = GroupSet::first(2);
    for (uint32_t n = 1; n < config.max_ranges; ++n) {
      CHECK(scheduler.decide(kGpu0, s, &w, 0).chosen);
      CHECK_FALSE(scheduler.row_added(w, {&s, {}, n, true, 1'000'000'000}, 0));
    }
    CHECK(scheduler.row_added(w, {&s, {}, 0, true, 0}, 0));
    scheduler.window_succeeded(w, std::vector<double>(w.rows.size() * 2, 1));
  }
  LaunchProgress seen{kGpu0, s.id, 10, 10};
  scheduler.progress({&seen, 1}, 0, 0, 1);
  CHECK(scheduler.coverage().covered_launches == 10);
}

TEST_CASE("scheduler: a budget that is spent affords nothing, even of unknown cost") {
  constexpr uint64_t kSecond = 1'000'000'000;
  MeasuringBudget budget(0.01, 0);
  budget.begin(0);
  CHECK(budget.affords(true, 0, kSecond));
  CHECK(budget.predicted_ns(false, 0, 0) == 0);
  budget.overhead(1'000 * kSecond);
  for (const bool incomplete : {false, true}) CHECK_FALSE(budget.affords(incomplete, 0, kSecond));
}

TEST_CASE("scheduler: a slow-down is known once all times are, and is of instrumented launches") {
  SampledSignature s;
  s.timed = 10;
  s.gpu_ns = 1'000;
  s.windowed = 4;
  s.windowed_timed = 3;
  s.windowed_gpu_ns = 900;
  CHECK_FALSE(s.slow_down());
  s.instrumented = 2;
  CHECK_FALSE(s.slow_down());
  s.windowed_timed = 4;
  s.windowed_gpu_ns = 1'000;  // 600 more than 4 usual ones, by 2 launches of 100
  REQUIRE(s.slow_down());
  CHECK(*s.slow_down() == 1 + 600.0 / 200);
  s.windowed_gpu_ns = 390;
  CHECK(*s.slow_down() == 1);
}

// 10 launches of it, of which the trace has no times.
void count(MeasurementScheduler& scheduler, const Signature& s) {
  const LaunchProgress seen{kGpu0, s.id, 10, 10};
  scheduler.progress({&seen, 1}, 0, 0, 1);
}

TEST_CASE_METHOD(Fixture,
                 "scheduler: kernels that need a group which cannot be read are not covered") {
  std::vector<MetricGroupPlan> plan = two_groups();
  plan.insert(plan.begin() + 1, {"tensor", {"t"}, false, false, {{"b", ""}}, "not on this chip"});
  config.every_launch = GENERATE(false, true);
  MeasurementScheduler reads(config, table);
  CHECK(reads.add_plan(kGpu0, "TU102", plan) == std::vector{GroupId{1}, GroupId{0}, GroupId{2}});
  const Signature &plain = signature("plain"), &product = signature("product");
  for (const Signature* const s : {&plain, &product}) {
    for (uint32_t i = 0; i < config.first_samples; ++i)
      for (const uint32_t group : {kScreening, kSass})
        reads.window_succeeded(window(kGpu0, group, {s}), std::vector{s == &product ? 4.0 : 0.0});
    count(reads, *s);
  }
  CHECK(reads.coverage().launches == 20);
  CHECK(reads.coverage().covered_launches == 10);
  CHECK(reads.coverage().unmeasurable_launches == 10);
  CHECK(reads.coverage().share() == 1);
}

TEST_CASE_METHOD(Fixture,
                 "scheduler: a group that cannot be read may be needed where none screens") {
  scheduler.add_plan(kGpu0, "TU102",
                     {{"screening", {"b"}, false, false, {}, "not on this chip"},
                      {"tensor", {"t"}, false, false, {{"b", ""}}, "not on this chip"},
                      {"sass", {"a"}, true, true}});
  const Signature& s = signature("plain");
  succeed(kGpu0, 0, {&s});
  count(scheduler, s);
  CHECK(scheduler.coverage().covered_launches == 0);
  CHECK(scheduler.coverage().unmeasurable_launches == 10);
}

TEST_CASE("scheduler: threads with a device each end with every sample taken") {
  SignatureTable table;
  SchedulerConfig config = unlimited();
  MeasurementScheduler scheduler(config, table);
  constexpr uint32_t kThreads = 4, kSignatures = 50;
  std::atomic<uint32_t> unfinished{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, device = DeviceId{t + 1}] {
      scheduler.add_plan(device, std::to_string(device.value), two_groups());
      for (uint32_t round = 0; round < 20; ++round)
        for (uint32_t i = 0; i < kSignatures; ++i) {
          FunctionInfo info;
          info.name = "f" + std::to_string(i);
          info.parameters_known = true;
          const Signature* s = table.intern_signature(*table.intern_function(info), {}, 0,
                                                      scheduler.initial_wanted());
          const LaunchDecision decision = scheduler.decide(device, *s, nullptr, 0);
          if (!decision.open) continue;
          MeasurementWindow w;
          w.device = device;
          w.group = *decision.open;
          scheduler.row_added(w, {s, {}, 0, true, 0}, 1);
          scheduler.window_succeeded(w, std::vector<double>{1});
        }
    });
  for (std::thread& t : threads) t.join();
  for (const Signature* s : table.signatures_after({})) unfinished += s->wanted_groups != 0;
  CHECK(unfinished == 0);
  CHECK(scheduler.windows_opened() == kThreads * kSignatures * 2 * config.first_samples);
}

// What the budget is: measuring_budget.h, "The rule".
TEST_CASE("a launch may wait as long as its signature has room in the budget") {
  constexpr uint64_t kSecond = 1'000'000'000;
  SchedulerConfig config;
  config.budget = 0.01;
  config.startup_ns = 200 * kSecond;
  Fixture f{SignatureTable(), config};
  f.scheduler.begin(0, 1);
  f.scheduler.add_plan(kGpu0, "GH100", two_groups());
  const Signature& known = f.signature("known");
  const Signature& lacking = f.signature("lacking");
  f.succeed(kGpu0, kScreening, {&known});
  f.succeed(kGpu0, kSass, {&known});
  f.succeed(kGpu0, kScreening, {&lacking});
  const uint64_t now = 100 * kSecond;  // earned: 1 s, and 2 s at the start
  CHECK(f.scheduler.affords(kGpu0, lacking, 3 * kSecond, now));
  CHECK_FALSE(f.scheduler.affords(kGpu0, lacking, 3 * kSecond + 1, now));
  CHECK(f.scheduler.affords(kGpu0, known, 1 * kSecond, now));
  CHECK_FALSE(f.scheduler.affords(kGpu0, known, 1 * kSecond + 1, now));
  f.scheduler.add_cost(kSecond);
  CHECK(f.scheduler.affords(kGpu0, lacking, 2 * kSecond, now));
  CHECK_FALSE(f.scheduler.affords(kGpu0, lacking, 2 * kSecond + 1, now));
  CHECK_FALSE(f.scheduler.affords(kGpu0, known, 1, now));
  CHECK_FALSE(f.scheduler.affords(kGpu1, lacking, 1, now));  // a device without a plan
}
