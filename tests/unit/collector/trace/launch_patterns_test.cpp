// Rows and runs of programs of which theory says how many there are.
#include <collector/trace/launch_patterns.h>

#include <algorithm>
#include <functional>
#include <random>

#include "catch.h"

using namespace flopinj;

namespace {

constexpr size_t kLong = LaunchPatterns::kLongRun;
constexpr size_t kContext = LaunchPatterns::kContext;

using Program = std::function<PatternRow(uint64_t)>;  // by number of the launch

PatternRow launch(uint64_t kernel, uint32_t step = 0) {
  return {static_cast<uint32_t>(kernel + 1), 7, step};
}
Program periodic(size_t period) {
  return [period](uint64_t i) { return launch(i % period); };
}

// Codes a program in batches that end anywhere, and holds what comes out against what went in.
class Writer {
 public:
  explicit Writer(size_t most_in_batch) : most_(most_in_batch) {}

  void code(const Program& program, uint64_t launches) {
    for (const uint64_t end = at_ + launches; at_ < end;) {
      const size_t size = std::min<uint64_t>(end - at_, most_ / 2 + 1 + random_() % (most_ / 2));
      std::vector<PatternRow> batch;
      for (size_t i = 0; i < size; ++i) batch.push_back(program(at_++));
      code(batch);
    }
  }
  void code(std::span<const PatternRow> batch) {
    std::vector<LaunchPatterns::Run> out;
    patterns_.code(batch, next_row_, out);
    ++batches_;
    runs_ += out.size();
    for (const auto& run : out) {
      REQUIRE(run.count > 0);
      REQUIRE(run.count <= batch.size());
      if (run.first_row == 0) {
        named_ += run.count;
      } else {
        const auto rows = patterns_.from(run.first_row).first(run.count);
        REQUIRE(std::equal(rows.begin(), rows.end(), batch.begin()));
      }
      batch = batch.subspan(run.count);
    }
    REQUIRE(batch.empty());
  }
  size_t rows() const { return patterns_.size(); }
  uint64_t batches() const { return batches_; }
  uint64_t runs() const { return runs_; }
  uint64_t named() const { return named_; }  // launches that are in no pattern

 private:
  LaunchPatterns patterns_;
  std::mt19937_64 random_{1};
  size_t most_;
  uint32_t next_row_ = 0;
  uint64_t at_ = 0, batches_ = 0, runs_ = 0, named_ = 0;
};

}  // namespace

TEST_CASE(
    "patterns: a program that repeats a long step has its rows once, and a run for each step") {
  const size_t period = GENERATE(as<size_t>{}, 256, 300, 1000, 4000);  // kLong and more
  Writer w(10 * period);
  constexpr uint64_t kSteps = 500;
  w.code(periodic(period), kSteps * period);
  CHECK(w.rows() == period);
  // The first step, and what a batch has left when its last step ends.
  CHECK(w.named() <= period + w.batches() * (kContext - 1));
  // A batch cuts a run, and one more where those few were left.
  CHECK(w.runs() <= kSteps + 3 * w.batches());
}

TEST_CASE("patterns: a short step is repeated within them until runs are long") {
  const size_t period = GENERATE(as<size_t>{}, 1, 2, 7, 35, 100, 128);
  Writer w(20'000);
  constexpr uint64_t kLaunches = 1'000'000;
  w.code(periodic(period), kLaunches);
  CHECK(w.rows() == kLong);
  // Runs of at most half the length would have been worth more rows.
  CHECK(w.runs() <= kLaunches / (kLong / 2) + 3 * w.batches());
}

TEST_CASE("patterns: sequence numbers that go up from one step to the next by as many repeat") {
  // A backward pass: its first number is one step of the counter after the last step's, 0 before
  // it.
  constexpr size_t kPeriod = 1000;
  Writer w(10 * kPeriod);
  const Program backward = [](uint64_t i) {
    const uint32_t first = i == 0 ? 481 : 959;
    return launch(i % kPeriod, i % kPeriod == 0 ? first : 2);
  };
  w.code(backward, 500 * kPeriod);
  CHECK(w.rows() < kPeriod + kContext);
  CHECK(w.runs() <= 500 + 3 * w.batches() + 10);
}

TEST_CASE("patterns: like blocks within a step do not cut it up, nor fill the table") {
  const uint64_t blocks = GENERATE(as<uint64_t>{}, 4, 24, 100);
  const uint64_t step = blocks * 14 + 1;
  Writer w(20'000);
  const Program program = [step](uint64_t i) {
    return i % step == 0 ? launch(99) : launch(i % step % 14);
  };
  w.code(program, 300'000);
  const size_t rows = w.rows();
  const uint64_t runs = w.runs();
  const uint64_t batches = w.batches();
  CHECK(rows < kMaxPatternRows / 16);
  w.code(program, 200'000);
  CHECK(w.rows() == rows);
  CHECK(w.runs() - runs <= 200'000 / 100 + 3 * (w.batches() - batches));
}

TEST_CASE("patterns: what never comes again takes no rows") {
  Writer w(20'000);
  w.code([](uint64_t i) { return launch(i); }, 200'000);
  CHECK(w.rows() == 0);
  CHECK(w.named() == 200'000);
}

TEST_CASE("patterns: a launch that is another one each time leaves the rest of a step in one run") {
  constexpr size_t kPeriod = 1000;
  constexpr uint64_t kSteps = 500;
  Writer w(10 * kPeriod);
  const Program counts = [](uint64_t i) {
    return i % kPeriod == 0 ? launch(i % kPeriod, static_cast<uint32_t>(100 + 3 * i))
                            : launch(i % kPeriod);
  };
  w.code(counts, kSteps * kPeriod);
  CHECK(w.rows() < kPeriod);
  CHECK(w.named() <= kPeriod + kSteps + w.batches() * kContext);
  CHECK(w.runs() <= 2 * kSteps + 3 * w.batches());
}

TEST_CASE("patterns: steps that come in pieces at first are put together when they come again") {
  // The first step has other kernels every nine launches, as where libraries try what is fastest.
  constexpr size_t kPeriod = 1000;
  Writer w(10 * kPeriod);
  const Program program = [](uint64_t i) {
    return launch(i < kPeriod && i % 9 == 0 ? 5000 + i : i % kPeriod);
  };
  w.code(program, 100 * kPeriod);
  const uint64_t runs = w.runs();
  const uint64_t batches = w.batches();
  w.code(program, 100 * kPeriod);
  CHECK(w.rows() < 4 * kPeriod);
  // No longer the 110 pieces of the second step.
  CHECK(w.runs() - runs <= 100 * 4 + 3 * (w.batches() - batches));
}

TEST_CASE("patterns: a sequence step that is too large for a row stays out of them") {
  Writer w(1000);
  w.code([](uint64_t i) { return launch(i % 500, i % 500 == 250 ? PatternRow::kNoStep : 0); },
         20'000);
  CHECK(w.named() >= 20'000 / 500);
  CHECK(w.rows() > 0);
}

TEST_CASE("patterns: there is an end of rows") {
  Writer w(20'000);
  // 20 programs of 4,000 launches each, each of them three times in a row.
  const Program changes = [](uint64_t i) { return launch(i / 12'000 * 4'000 + i % 4'000); };
  w.code(changes, 240'000);
  CHECK(w.rows() <= kMaxPatternRows);
  CHECK(w.rows() > kMaxPatternRows - 4'000);
  CHECK(w.named() > 80'000);
}
