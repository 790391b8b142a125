#include <collector/scheduler.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "catch.h"

using namespace flopinj;

namespace {

constexpr DeviceId kGpu0{1}, kGpu1{2};
constexpr uint32_t kSass = 0, kScreening = 1;

std::vector<MetricGroupPlan> two_groups() {
  return {{"sass", {"a"}, true, true}, {"screening", {"b"}, false, false}};
}

struct Fixture {
  SignatureTable table;
  SchedulerConfig config;
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
  void succeed(DeviceId device, uint32_t group, std::vector<const Signature*> signatures,
               std::vector<double> values = {}) {
    scheduler.window_succeeded(device, group, rows(signatures), values);
  }
  void fail(DeviceId device, uint32_t group, std::vector<const Signature*> signatures) {
    scheduler.window_failed(device, group, rows(signatures));
  }
  static std::vector<WindowRow> rows(const std::vector<const Signature*>& signatures) {
    std::vector<WindowRow> result;
    for (const Signature* s : signatures) result.push_back({s, {}});
    return result;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "scheduler: a plan gives its groups ids and reaches every signature") {
  const Signature& before = signature("before");
  CHECK(scheduler.initial_wanted() == 0);
  CHECK(scheduler.group_to_open(kGpu0, before) == std::nullopt);
  CHECK(scheduler.add_plan(kGpu0, two_groups()) == std::vector{GroupId{1}, GroupId{2}});
  CHECK(scheduler.add_plan(kGpu1, two_groups()) == std::vector{GroupId{3}, GroupId{4}});
  CHECK(scheduler.add_plan(kGpu0, two_groups()) == std::vector{GroupId{1}, GroupId{2}});
  CHECK(scheduler.initial_wanted() == 0b1111);
  CHECK(before.wanted_groups == 0b1111);
  CHECK(signature("after").wanted_groups == 0b1111);
  CHECK(scheduler.group_to_open(kGpu0, before) == kSass);
  CHECK(scheduler.group_to_open(kGpu1, before) == kSass);
  CHECK(scheduler.group_to_open(DeviceId{3}, before) == std::nullopt);
  CHECK(scheduler.group_to_open(DeviceId{4'000'000}, before) == std::nullopt);
}

TEST_CASE_METHOD(Fixture,
                 "scheduler: each group is sampled as often as configured, in plan order") {
  scheduler.add_plan(kGpu0, two_groups());
  const Signature& s = signature("s");
  for (uint32_t i = 0; i < config.samples_per_group; ++i) {
    CHECK(scheduler.group_to_open(kGpu0, s) == kSass);
    succeed(kGpu0, kSass, {&s});
  }
  succeed(kGpu0, kScreening, {&s, &s});
  CHECK(scheduler.group_to_open(kGpu0, s) == kScreening);
  succeed(kGpu0, kScreening, {&s});
  CHECK(scheduler.group_to_open(kGpu0, s) == std::nullopt);
  CHECK(s.wanted_groups == 0);
  CHECK(scheduler.windows_opened() == 5);
  CHECK(scheduler.windows_discarded() == 0);
}

TEST_CASE_METHOD(Fixture, "scheduler: devices are measured each for itself") {
  scheduler.add_plan(kGpu0, two_groups());
  scheduler.add_plan(kGpu1, two_groups());
  const Signature& s = signature("s");
  succeed(kGpu1, kSass, {&s, &s, &s});
  CHECK(scheduler.group_to_open(kGpu1, s) == kScreening);
  CHECK(scheduler.group_to_open(kGpu0, s) == kSass);
  scheduler.disable(kGpu0);
  CHECK(scheduler.group_to_open(kGpu0, s) == std::nullopt);
  CHECK(scheduler.group_to_open(kGpu1, s) == kScreening);
  CHECK(signature("new").wanted_groups == 0b1100);
  scheduler.disable_all();
  CHECK(s.wanted_groups == 0);
  CHECK(signature("newer").wanted_groups == 0);
  CHECK(scheduler.initial_wanted() == 0);
}

TEST_CASE_METHOD(Fixture, "scheduler: all bits can be used, and no more") {
  uint32_t planned = 0;
  for (uint32_t d = 1; d <= 40; ++d)
    planned += !scheduler.add_plan(DeviceId{d}, two_groups()).empty();
  CHECK(planned == kMaxGroups / 2);
  CHECK(scheduler.initial_wanted() == ~uint64_t{0});
  const Signature& s = signature("s");
  const DeviceId last{kMaxGroups / 2};
  CHECK(scheduler.group_to_open(last, s) == kSass);
  succeed(last, kScreening, {&s, &s, &s});
  CHECK(s.wanted_groups == ~uint64_t{0} >> 1);
  CHECK(scheduler.group_to_open(DeviceId{kMaxGroups / 2 + 1}, s) == std::nullopt);
  SignatureTable other;
  MeasurementScheduler fresh({}, other);
  CHECK(fresh.add_plan(kGpu0, std::vector<MetricGroupPlan>(kMaxGroups)).size() == kMaxGroups);
  CHECK(fresh.initial_wanted() == ~uint64_t{0});
  MeasurementScheduler small({}, other);
  CHECK(small.add_plan(kGpu0, std::vector<MetricGroupPlan>(kMaxGroups + 1)).empty());
  CHECK(small.add_plan(kGpu0, {}).empty());
  CHECK(small.add_plan(DeviceId{}, two_groups()).empty());
}

TEST_CASE_METHOD(Fixture, "scheduler: a group with conditions is measured where screening asks") {
  // Screening reads three columns; `half` is part of `hmma`.
  scheduler.add_plan(kGpu0, {{"sass", {"a"}, true, true},
                             {"screening", {"hmma", "half", "imma"}},
                             {"fp16", {"f"}, false, false, {{"hmma", "half"}}},
                             {"int8", {"i"}, false, false, {{"other", ""}, {"imma", ""}}}});
  constexpr uint32_t kFp16 = 2;
  const Signature &plain = signature("plain"), &half = signature("half"), &gemm = signature("gemm"),
                  &both = signature("both");
  CHECK(scheduler.initial_wanted() == 0b0011);
  CHECK(plain.wanted_groups == 0b0011);
  for (const Signature* s : {&plain, &half, &gemm, &both})
    succeed(kGpu0, kSass, {s, s, s}, {1, 1, 1});
  succeed(kGpu0, kScreening, {&plain, &half, &gemm, &both}, {0, 0, 0, 7, 7, 0, 8, 7, 0, 1, 0, 1});
  CHECK(plain.wanted_groups == 0b0010);
  CHECK(half.wanted_groups == 0b0010);
  CHECK(gemm.wanted_groups == 0b0110);
  CHECK(both.wanted_groups == 0b1110);
  succeed(kGpu0, kFp16, {&gemm, &gemm, &gemm}, {1, 1, 1});
  CHECK(gemm.wanted_groups == 0b0010);
  // Enough samples are enough, also when screening asks again.
  succeed(kGpu0, kScreening, {&gemm, &gemm, &plain, &plain}, {8, 7, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0});
  CHECK(gemm.wanted_groups == 0);
  CHECK(plain.wanted_groups == 0);
  // Given up, and not asked for again.
  for (uint32_t i = 0; i < config.max_failures; ++i) fail(kGpu0, kFp16, {&both});
  succeed(kGpu0, kScreening, {&both}, {1, 0, 1});
  CHECK(both.wanted_groups == 0b1010);
  scheduler.disable(kGpu0);
  succeed(kGpu0, kScreening, {&half}, {8, 7, 1});
  CHECK(half.wanted_groups == 0);
}

TEST_CASE_METHOD(Fixture, "scheduler: conditions that nothing reads hold for every kernel") {
  scheduler.add_plan(kGpu0,
                     {{"sass", {"a"}, true, true}, {"fp16", {"f"}, false, false, {{"hmma", ""}}}});
  CHECK(signature("s").wanted_groups == 0b11);
}

TEST_CASE_METHOD(Fixture, "scheduler: collectives and graphs end a window and never start one") {
  scheduler.add_plan(kGpu0, two_groups());
  const Signature& collective = signature("ncclDevKernel_AllReduce");
  CHECK(scheduler.group_to_open(kGpu0, collective) == std::nullopt);
  CHECK(scheduler.close_before(&collective));
  CHECK(scheduler.close_before(nullptr));
  CHECK_FALSE(scheduler.close_before(&signature("s")));
}

TEST_CASE_METHOD(Fixture, "scheduler: a window closes when it is full or has been open too long") {
  scheduler.add_plan(kGpu0, two_groups());
  std::vector<const Signature*> many;
  for (uint32_t i = 1; i < config.max_ranges; ++i) many.push_back(&signature("s", i));
  CHECK_FALSE(scheduler.close_after(kGpu0, kSass, rows(many), 0, 0));
  CHECK_FALSE(scheduler.close_after(kGpu0, kSass, rows(many), 100, 100 + config.max_open_ns - 1));
  CHECK(scheduler.close_after(kGpu0, kSass, rows(many), 100, 100 + config.max_open_ns));
  CHECK_FALSE(scheduler.close_after(kGpu0, kSass, rows(many), 100, 99));  // clocks may step back
  many.push_back(&signature("s", config.max_ranges));
  CHECK(scheduler.close_after(kGpu0, kSass, rows(many), 0, 0));
  CHECK_FALSE(scheduler.close_after(kGpu0, kSass, {}, 0, 0));
}

TEST_CASE_METHOD(Fixture,
                 "scheduler: a window closes when nobody has wanted its group for a while") {
  scheduler.add_plan(kGpu0, two_groups());
  const Signature& done = signature("done");
  const Signature& fresh = signature("fresh");
  succeed(kGpu0, kSass, {&done, &done, &done});
  std::vector<const Signature*> in_window{&fresh};
  for (uint32_t i = 0; i < config.idle_launches; ++i) {
    CHECK_FALSE(scheduler.close_after(kGpu0, kSass, rows(in_window), 0, 0));
    in_window.push_back(&done);
  }
  CHECK(scheduler.close_after(kGpu0, kSass, rows(in_window), 0, 0));
  in_window.push_back(&fresh);
  CHECK_FALSE(scheduler.close_after(kGpu0, kSass, rows(in_window), 0, 0));
}

TEST_CASE_METHOD(Fixture, "scheduler: what a window already has is not wanted any more") {
  // One signature over and over: three rows are enough, the rest only wait for others.
  scheduler.add_plan(kGpu0, two_groups());
  const Signature& s = signature("s");
  std::vector<const Signature*> in_window;
  uint32_t closed_at = 0;
  while (closed_at == 0) {
    in_window.push_back(&s);
    if (scheduler.close_after(kGpu0, kSass, rows(in_window), 0, 0))
      closed_at = static_cast<uint32_t>(in_window.size());
  }
  CHECK(closed_at == config.samples_per_group + config.idle_launches);
}

TEST_CASE_METHOD(Fixture, "scheduler: a signature whose windows keep failing is given up") {
  scheduler.add_plan(kGpu0, two_groups());
  const Signature& s = signature("s");
  const Signature& other = signature("other");
  fail(kGpu0, kSass, {&s, &s, &s});  // one failure, however often it was in it
  fail(kGpu0, kSass, {&s});
  CHECK(scheduler.group_to_open(kGpu0, s) == kSass);
  succeed(kGpu0, kSass, {&s});  // not in a row
  fail(kGpu0, kSass, {&s});
  fail(kGpu0, kSass, {&s});
  CHECK(scheduler.group_to_open(kGpu0, s) == kSass);
  fail(kGpu0, kSass, {&s, &other});
  CHECK(scheduler.group_to_open(kGpu0, s) == kScreening);
  CHECK(scheduler.group_to_open(kGpu0, other) == kSass);
  CHECK(scheduler.windows_opened() == 6);
  CHECK(scheduler.windows_discarded() == 5);
}

TEST_CASE_METHOD(Fixture, "scheduler: one bad kernel does not take its neighbours with it") {
  // The edge's loop: kernels launched in turn, windows as the scheduler wants them; a window with
  // `bad` in it fails.
  scheduler.add_plan(kGpu0, {two_groups()[0]});
  const Signature& bad = signature("bad");
  std::vector<const Signature*> program;
  for (uint32_t i = 0; i < 10; ++i) program.push_back(&signature("good", i + 1));
  program.insert(program.begin() + 4, &bad);
  std::map<const Signature*, uint32_t> samples;
  std::vector<const Signature*> window;
  bool open = false;
  const auto close = [&] {
    bool failed = false;
    for (const Signature* s : window) failed |= s == &bad;
    if (failed)
      fail(kGpu0, kSass, window);
    else
      succeed(kGpu0, kSass, window);
    if (!failed)
      for (const Signature* s : window) ++samples[s];
    window.clear();
    open = false;
  };
  for (uint32_t step = 0; step < 40; ++step)
    for (const Signature* s : program) {
      if (!open && scheduler.group_to_open(kGpu0, *s)) open = true;
      if (!open) continue;
      window.push_back(s);
      if (scheduler.close_after(kGpu0, kSass, rows(window), 0, 0)) close();
    }
  if (open) close();
  for (const Signature* s : program) {
    CHECK(s->wanted_groups == 0);
    if (s == &bad)
      CHECK(samples[s] == 0);
    else
      CHECK(samples[s] >= config.samples_per_group);
  }
}

TEST_CASE_METHOD(Fixture, "scheduler: a kernel launched once gets the required group") {
  scheduler.add_plan(kGpu0, two_groups());
  const Signature& once = signature("once");
  const auto group = scheduler.group_to_open(kGpu0, once);
  REQUIRE(group == kSass);
  CHECK_FALSE(scheduler.close_after(kGpu0, *group, rows({&once}), 0, 1'000));
  succeed(kGpu0, *group, {&once});                       // closed at the end of the program
  CHECK(scheduler.group_to_open(kGpu0, once) == kSass);  // would like more, does not insist
}

TEST_CASE_METHOD(Fixture, "scheduler: a group whose windows cannot be opened is given up") {
  scheduler.add_plan(kGpu0, two_groups());
  const Signature& s = signature("s");
  for (uint32_t i = 0; i < config.max_failures; ++i) {
    CHECK(scheduler.group_to_open(kGpu0, s) == kSass);
    fail(kGpu0, kSass, {});
  }
  CHECK(scheduler.group_to_open(kGpu0, s) == kScreening);
  CHECK(signature("new").wanted_groups == 0b10);
  CHECK(scheduler.close_after(kGpu0, kSass, rows({&s}), 0, 0));
  fail(kGpu0, 17, {&s});  // no such group
  succeed(DeviceId{9}, 0, {&s});
  CHECK(scheduler.group_to_open(kGpu0, s) == kScreening);
}

TEST_CASE("scheduler: threads with a device each end with every sample taken") {
  SignatureTable table;
  SchedulerConfig config;
  MeasurementScheduler scheduler(config, table);
  constexpr uint32_t kThreads = 4, kSignatures = 50;
  std::atomic<uint32_t> unfinished{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, device = DeviceId{t + 1}] {
      scheduler.add_plan(device, two_groups());
      for (uint32_t round = 0; round < 20; ++round)
        for (uint32_t i = 0; i < kSignatures; ++i) {
          FunctionInfo info;
          info.name = "f" + std::to_string(i);
          info.parameters_known = true;
          const Signature* s = table.intern_signature(*table.intern_function(info), {}, 0,
                                                      scheduler.initial_wanted());
          const auto group = scheduler.group_to_open(device, *s);
          if (!group) continue;
          const WindowRow row{s, {}};
          scheduler.close_after(device, *group, {&row, 1}, 0, 1);
          scheduler.window_succeeded(device, *group, {&row, 1}, {});
        }
    });
  for (std::thread& t : threads) t.join();
  for (const Signature* s : table.signatures_after({})) unfinished += s->wanted_groups != 0;
  CHECK(unfinished == 0);
  CHECK(scheduler.windows_opened() == kThreads * kSignatures * 2 * config.samples_per_group);
}
