// A trace of level `tally` is no larger for a longer run, and whole at every moment of it.
#include <chrono>
#include <thread>

#include "catch.h"
#include "recording.h"
#include "scratch.h"
#include "support/effort.h"

using namespace flopinj;

namespace {

constexpr uint32_t kKernels = 300;
constexpr uint64_t kSecond = 1'000'000'000;

// A run of so many simulated seconds: every kernel once a second, a flush after each.
class Run {
 public:
  explicit Run(std::unique_ptr<Sink> sink) : recording_(config(), clock()) {
    recording_.start(std::move(sink));
    // The writer's first flush is its own. It could find a part of the kernels, and what it writes
    // then has room for twice as much, which all of them outgrow at some later time.
    recording_.collector.flush();
    stream_ = recording_.collector.add_stream(DeviceId{1}, 1, 1);
    for (uint32_t k = 0; k < kKernels; ++k)
      kernels_.push_back(recording_.function("kernel" + std::to_string(k)));
    thread_ = recording_.collector.add_thread(1);
  }
  void second() {
    for (const KernelFunction* kernel : kernels_) recording_.launch(*thread_, *kernel, 7, stream_);
    *now_ += kSecond;
    recording_.collector.flush();
  }
  void close() { recording_.collector.close(EndReason::kExit); }

 private:
  static CollectorConfig config() {
    CollectorConfig c;
    c.level = Level::kTally;
    c.flush_period_ms = 1'000'000;  // only when asked
    return c;
  }
  std::function<uint64_t()> clock() {
    return [now = now_] { return now->load(); };
  }

  std::shared_ptr<std::atomic<uint64_t>> now_ = std::make_shared<std::atomic<uint64_t>>(kSecond);
  test::Recording recording_;
  StreamId stream_;
  ThreadState* thread_ = nullptr;
  std::vector<const KernelFunction*> kernels_;
};

}  // namespace

TEST_CASE("a tally of ten minutes is as large as one of ten seconds") {
  const test::Scratch dir;
  Run run(open_sink(dir / "trace.pb", {}).sink);
  const auto size = [&] { return test::file_bytes(dir / "trace.pb").size(); };
  for (int s = 0; s < 10; ++s) run.second();
  const size_t after_ten_seconds = size();
  for (uint64_t s = 10; s < 600; ++s) {
    run.second();
    if (s % 97 != 0) continue;
    const auto trace = test::read_trace(test::file_bytes(dir / "trace.pb"));
    REQUIRE(test::first_fault(trace) == "");
    REQUIRE(test::sums(trace).launches == (s + 1) * kKernels);
  }
  CHECK(size() == after_ten_seconds);
  run.close();
  const auto trace = test::read_trace(test::file_bytes(dir / "trace.pb"));
  CHECK(test::first_fault(trace) == "");
  const auto sums = test::sums(trace);
  CHECK(sums.launches == 600 * kKernels);
  CHECK(sums.timed == 600 * kKernels);
  CHECK(sums.gpu_time_ns == 600 * kKernels * 700);
  CHECK(size() < after_ten_seconds + 100);  // the end mark
}

TEST_CASE("a torn rewrite costs the last second alone") {
  const test::Scratch dir;
  Run run(open_sink(dir / "trace.pb", {}).sink);
  for (int s = 0; s < 20; ++s) run.second();
  const std::string before = test::file_bytes(dir / "trace.pb");
  run.second();
  const std::string after = test::file_bytes(dir / "trace.pb");
  REQUIRE(after.size() == before.size());
  // As many bytes of the new state as the file's pages were taken in, in any amount.
  for (size_t cut = 0; cut <= after.size(); cut += test::effort<size_t>(257, 4099)) {
    const auto trace = test::read_trace(after.substr(0, cut) + before.substr(cut));
    INFO("cut at " << cut);
    REQUIRE(test::sums(trace).launches >= 20 * kKernels);
    REQUIRE(test::sums(trace).launches <= 21 * kKernels);
    REQUIRE_FALSE(trace.torn);
  }
  run.close();
}

TEST_CASE("where nothing can be rewritten, a tally grows with the logarithm of the run") {
  auto now = std::make_shared<std::atomic<uint64_t>>(kSecond);
  CollectorConfig config;
  config.level = Level::kTally;
  config.drain_period_ms = config.flush_period_ms = 1;
  test::Recording r(config, [now] { return now->load(); });
  r.start();
  const StreamId stream = r.collector.add_stream(DeviceId{1}, 1, 1);
  const KernelFunction* kernel = r.function("kernel");
  ThreadState* thread = r.collector.add_thread(1);
  constexpr uint64_t kSteps = 1'000;
  for (uint64_t i = 0; i < kSteps; ++i) {
    r.launch(*thread, *kernel, 7, stream);
    *now += 10 * kSecond;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  r.collector.close(EndReason::kExit);
  const auto trace = r.read();
  CHECK(test::first_fault(trace) == "");
  CHECK(test::sums(trace).launches == kSteps);
  CHECK(test::sums(trace).gpu_time_ns == kSteps * 700);
  // Every step up to 1,000 s, then at every hundredth of the time: 100 + 100 ln 10 = 330 tallies,
  // each with a ledger and our cost.
  CHECK(trace.revised);
  CHECK(trace.packets.size() < 3 * 400);
}
