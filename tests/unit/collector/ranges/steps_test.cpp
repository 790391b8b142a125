// Training steps: which ranges they are, and which launches are in them.
#include <collector/ranges/process_ranges.h>
#include <collector/ranges/range_stack.h>
#include <collector/ranges/steps.h>
#include <own_steps.h>
#include <step_buckets.h>

#include <string>
#include <thread>
#include <vector>

#include "catch.h"

using namespace flopinj;

namespace {

// On a clock that says how often it was asked.
struct Fixture {
  explicit Fixture(std::string_view names = {}) : steps(names, [this] { return ++clock; }) {
    steps.begin();
  }
  uint64_t clock = 0;
  RangePathTable table;
  Steps steps;
  ProcessRanges process{table, nullptr, &steps};
  RangeStack stack{table, process};

  uint32_t now(RangeStack& of) {
    of.path();
    return of.step();
  }
  uint32_t now() { return now(stack); }
};

}  // namespace

TEST_CASE("steps: the usual names") {
  for (const char* name : {"step",
                           "Step",
                           "STEP",
                           "step 3",
                           "step_12",
                           "step#7",
                           "Step: 40",
                           "step=1",
                           "step[3]",
                           "step 3/100",
                           "train_step",
                           "train step 5",
                           "training_step",
                           "TrainingStep",
                           "train-step-3",
                           "iteration",
                           "Iteration 12",
                           "iter",
                           "iter5",
                           "train_iter_3",
                           "train iteration 7",
                           "ProfilerStep#17",
                           "[pl][profile]run_training_batch"})
    CHECK((std::string(name) + (is_usual_step(name) ? " is" : " is not")) ==
          std::string(name) + " is");
  for (const char* name : {"",
                           "3",
                           "optimizer step",
                           "Optimizer.step#SGD.step",
                           "opt.step()",
                           "DeepSpeedEngine.step",
                           "stepper",
                           "forward",
                           "backward",
                           "train",
                           "training",
                           "epoch 3",
                           "batch",
                           "aten::mul",
                           "[pl][profile][Strategy]DDPStrategy.training_step",
                           "validation_step",
                           "test_step",
                           "steps",
                           "iterate",
                           "train_train_step"})
    CHECK((std::string(name) + (is_usual_step(name) ? " is" : " is not")) ==
          std::string(name) + " is not");
  CHECK(!is_usual_step(std::string(10'000, ' ') + "step"));
}

TEST_CASE("steps: names of the user's are the only ones") {
  const auto now = [] { return uint64_t{1}; };
  const Steps chosen("optimise|my loop", now);
  for (const char* name : {"optimise", "my loop", "my loop 17", "my loop #3"})
    CHECK(chosen.is_step(name));
  for (const char* name : {"step", "Optimise", "my", "my loops", ""}) CHECK(!chosen.is_step(name));
  for (const char* name : {"step", "none", ""}) CHECK(!Steps("none", now).is_step(name));
}

TEST_CASE_METHOD(Fixture, "steps: a range on a thread is one, from its push to its pop") {
  CHECK(now() == 0);
  for (uint32_t n = 1; n <= 3; ++n) {
    stack.push({}, "step " + std::to_string(n));
    stack.push({}, "forward");
    CHECK(now() == n);
    stack.push({}, "iteration");  // inside of one: none
    CHECK(now() == n);
    stack.pop({});
    stack.pop({});
    CHECK(now() == n);
    stack.pop({});
    CHECK(now() == 0);
  }
  const auto ended = steps.take();
  REQUIRE(ended.size() == 3);
  for (uint32_t i = 0; i < 3; ++i) {
    CHECK(ended[i].number == i + 1);
    CHECK(ended[i].start_ns == 2 * i + 1);
    CHECK(ended[i].end_ns == 2 * i + 2);
  }
  CHECK(table.paths_after({}).front().id == ended[0].path);
  CHECK(steps.take().empty());
}

TEST_CASE("steps: none before the recording has begun") {
  RangePathTable table;
  Steps steps({}, [] { return uint64_t{1}; });
  ProcessRanges process(table, nullptr, &steps);
  RangeStack stack(table, process);
  stack.push({}, "step");
  steps.begin();
  stack.path();
  CHECK(stack.step() == 0);  // when it began is not known
  stack.pop({});
  CHECK(steps.take().empty());
  stack.push({}, "step");
  CHECK(stack.step() == 1);
}

TEST_CASE_METHOD(Fixture, "steps: threads without their own work for the process's") {
  RangeStack other(table, process);
  stack.push({}, "step");
  other.push({}, "autograd::engine::evaluate_function: MmBackward0");
  CHECK(now(other) == 1);
  stack.pop({});
  CHECK(now(other) == 0);
  stack.push({}, "step");
  CHECK(now(other) == 2);
  other.pop({});
  CHECK(now(other) == 2);
}

TEST_CASE_METHOD(Fixture, "steps: threads that have their own are in these") {
  RangeStack other(table, process), helper(table, process);
  stack.push({}, "step");
  other.push({}, "step");
  CHECK(now() == 1);
  CHECK(now(other) == 2);
  CHECK(now(helper) == 1);  // of the first that was open
  stack.pop({});
  CHECK(now() == 0);
  CHECK(now(other) == 2);
  CHECK(now(helper) == 0);  // nobody knows
  stack.push({}, "step");
  CHECK(now(helper) == 3);
  other.pop({});
  CHECK(now(other) == 3);
  stack.pop({});
  const auto ended = steps.take();
  REQUIRE(ended.size() == 3);
  CHECK(ended[0].number == 1);
  CHECK(ended[1].number == 2);
  CHECK(ended[2].number == 3);
}

TEST_CASE_METHOD(Fixture, "steps: of the process, for all threads") {
  RangeStack other(table, process);
  const uint64_t id = process.start({}, "ProfilerStep#1");
  CHECK(now() == 1);
  CHECK(now(other) == 1);
  other.push({}, "step");  // in it
  CHECK(now(other) == 1);
  const uint64_t inner = process.start({}, "iteration 5");
  CHECK(now() == 1);
  process.end(inner);
  other.pop({});
  process.end(id);
  CHECK(now() == 0);
  CHECK(now(other) == 0);
  CHECK(steps.take().size() == 1);
}

// A step of 600 operators in a table of 65,536 paths: with a path for each step's number, all
// operators from the 110th step on were in no range of theirs.
TEST_CASE_METHOD(Fixture, "steps: those of any number have the same paths") {
  std::vector<PathId> first;
  for (int step = 0; step < 200; ++step) {
    std::vector<PathId> paths;
    const std::string name = "train_step " + std::to_string(step);
    const bool whole = step % 2 == 0;  // of the process, else of the thread
    const uint64_t id = whole ? process.start({}, name) : 0;
    if (!whole) stack.push({}, name);
    for (int op = 0; op < 600; ++op) {
      stack.push({}, "layer " + std::to_string(op % 200));
      stack.push({}, "aten::mul, sizes = [[" + std::to_string(op) + "]]");
      paths.push_back(stack.path());
      stack.pop({});
      stack.pop({});
    }
    if (whole) process.end(id);
    if (!whole) stack.pop({});
    if (step < 2) first.insert(first.end(), paths.begin(), paths.end());
    const auto expected = first.begin() + (whole ? 0 : 600);
    CHECK(std::equal(paths.begin(), paths.end(), expected));
  }
  CHECK(table.ranges_overflowed() == 0);
  CHECK(table.names_generalised() == 0);  // it is no loss: steps say their numbers
}

TEST_CASE_METHOD(Fixture, "steps: a thread that ends inside of one leaves no step") {
  {
    RangeStack gone(table, process);
    gone.push({}, "step");
    CHECK(now() == 1);
  }
  CHECK(now() == 0);
  CHECK(steps.take().empty());
  stack.push({}, "step");
  CHECK(now() == 2);
}

TEST_CASE_METHOD(Fixture, "steps: those that find no room are counted") {
  constexpr uint64_t kMore = 10;
  for (uint64_t i = 0; i < Steps::kMostEnded + kMore; ++i) {
    stack.push({}, "step");
    stack.pop({});
  }
  CHECK(steps.lost() == kMore);
  CHECK(steps.take().size() == Steps::kMostEnded);
  stack.push({}, "step");
  stack.pop({});
  CHECK(steps.take().size() == 1);
}

TEST_CASE_METHOD(Fixture,
                 "steps: a step that overlaps ranges of another domain ends at its own pop") {
  const StringId domain = table.intern_string("other");
  stack.push({}, "step");
  stack.push(domain, "x");
  stack.pop({});
  CHECK(now() == 0);
  stack.push({}, "step");
  CHECK(now() == 2);
  stack.pop(domain);
  CHECK(now() == 2);
  stack.pop({});
  CHECK(steps.take().size() == 2);
}

TEST_CASE("steps: threads open and close theirs at once") {
  RangePathTable table;
  std::atomic<uint64_t> clock{0};
  Steps steps({}, [&] { return ++clock; });
  ProcessRanges process(table, nullptr, &steps);
  steps.begin();
  constexpr int kThreads = 4, kSteps = 2'000;
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      RangeStack stack(table, process);
      uint32_t last = 0;
      for (int i = 0; i < kSteps; ++i) {
        stack.push({}, "step");
        stack.path();
        if (stack.step() <= last) ++wrong;
        last = stack.step();
        stack.pop({});
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  const auto ended = steps.take();
  CHECK(ended.size() == kThreads * kSteps);
  std::vector<bool> seen(kThreads * kSteps + 1);
  for (const Step& step : ended) {
    CHECK(step.end_ns > step.start_ns);
    CHECK(!seen.at(step.number));
    seen[step.number] = true;
  }
  CHECK(steps.of_process() == 0);
}

TEST_CASE("steps: buckets are in order, and a bucket's middle is near all that is in it") {
  CHECK(step_bucket(0) == 0);
  uint32_t last = 0;
  for (uint64_t ns = 1; ns < UINT64_MAX / 3; ns += ns / 97 + 1) {
    const uint32_t bucket = step_bucket(ns);
    REQUIRE((bucket == last || bucket > last));
    last = bucket;
    const uint64_t begin = step_bucket_begin(bucket), end = step_bucket_begin(bucket + 1);
    REQUIRE(begin <= ns);
    REQUIRE(ns < end);
    const double middle = static_cast<double>(begin) / 2 + static_cast<double>(end - 1) / 2;
    REQUIRE(std::abs(middle - static_cast<double>(ns)) <= 0.008 * static_cast<double>(ns));
  }
  CHECK(step_bucket(UINT64_MAX) == kStepBuckets - 1);
}

TEST_CASE_METHOD(Fixture, "steps: flopinj.torch's last until the program has its own") {
  const auto one = process.start({}, kOwnStep);
  CHECK(now() == 1);
  process.end(one);
  const auto two = process.start({}, kOwnStepWithoutNames);
  CHECK(now() == 2);
  stack.push({}, "step");  // the program's
  CHECK(now() == 3);
  stack.push({}, "forward");
  process.end(two);
  const auto three = process.start({}, kOwnStep);
  CHECK(now() == 3);
  stack.pop({});
  stack.pop({});
  CHECK(now() == 0);
  process.end(three);
  process.end(process.start({}, kOwnStep));
  const auto ended = steps.take();
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].number == 1);
  CHECK(ended[1].number == 3);
}

TEST_CASE("steps: where the user names them, flopinj.torch's are none") {
  const auto at = [] { return uint64_t{1}; };
  CHECK(Steps({}, at).is_step(kOwnStep));
  for (const char* names : {"optimise", "none"}) CHECK(!Steps(names, at).is_step(kOwnStep));
}
