// Killed at any moment, the trace is readable and balanced up to its last second.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "catch.h"
#include "recording.h"
#include "scratch.h"
#include "support/effort.h"

using namespace flopinj;
using Clock = std::chrono::steady_clock;

namespace {

// Launches made, with the time they were made at: shared with the child, so that it outlives it.
struct Shared {
  static constexpr size_t kSlots = 6400;  // of 100 ms
  std::atomic<uint64_t> made[kSlots];
  std::atomic<long>
      late;  // slots by which the machine has let a sleeping thread of it wake up late
};

[[noreturn]] void record_for_ever(const std::string& file, Level level, Shared& shared,
                                  Clock::time_point began) {
  CollectorConfig config;
  config.level = level;
  test::Recording r(config);
  r.start(std::move(open_sink(file, {}).sink));
  const KernelFunction* kernel = r.function("kernel");
  const StreamId stream = r.collector.add_stream(DeviceId{1}, 1, 1);
  ThreadState* thread = r.collector.add_thread(1);
  std::thread([&] {
    for (auto due = Clock::now();;) {
      due += std::chrono::milliseconds(20);
      std::this_thread::sleep_until(due);
      const long slots = (Clock::now() - due) / std::chrono::milliseconds(100);
      if (slots > shared.late) shared.late = slots;
      if (slots > 0) due = Clock::now();
    }
  }).detach();
  for (uint32_t i = 0;; ++i) {
    r.launch(*thread, *kernel, 1 + i % 100, stream);
    const auto slot = static_cast<size_t>((Clock::now() - began) / std::chrono::milliseconds(100));
    if (slot < Shared::kSlots) shared.made[slot].fetch_add(1);
    if (i % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
}

// What the file has so far, read while the writer's thread writes.
class SeenSink : public test::MemorySink {
 public:
  struct Seen {
    std::mutex lock;
    std::string bytes;
    uint64_t launches() {
      const std::lock_guard held(lock);
      return test::sums(test::read_trace(bytes)).launches;
    }
  };
  explicit SeenSink(Seen& seen) : seen_(seen) {}
  bool write(std::string_view packets) override {
    const std::lock_guard held(seen_.lock);
    seen_.bytes += packets;
    return true;
  }

 private:
  Seen& seen_;
};

}  // namespace

// By a clock that stands still but for what the test says, so that no load of the machine shows.
TEST_CASE("what was launched is in the file once the clock has gone on by as much as is promised") {
  // docs/safety.md. A tally is looked at with each flush, and written where it is a second old.
  constexpr std::pair<Level, uint64_t> kPromised[] = {{Level::kLaunches, 250'000'000},
                                                      {Level::kTally, 1'000'000'000}};
  for (const auto& [level, period_ns] : kPromised) {
    SeenSink::Seen seen;
    std::atomic<uint64_t> now{period_ns};
    CollectorConfig config;
    config.level = level;
    test::Recording r(config, [&now] { return now.load(); });
    r.start(std::make_unique<SeenSink>(seen));
    ThreadState* const thread = r.collector.add_thread(1);
    const KernelFunction* const kernel = r.function("kernel");
    const StreamId stream = r.collector.add_stream(DeviceId{1}, 1, 1);
    r.collector.flush();  // the next one is due a period later
    for (uint64_t launches = 10; launches <= 30; launches += 10) {
      for (int i = 0; i < 10; ++i) r.launch(*thread, *kernel, 1, stream);
      CHECK(seen.launches() == launches - 10);
      now += period_ns;
      const auto give_up = Clock::now() + std::chrono::seconds(60);
      while (seen.launches() != launches && Clock::now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      REQUIRE(seen.launches() == launches);
    }
    r.collector.close(EndReason::kExit);
  }
}

TEST_CASE("a killed process leaves a readable, balanced trace that lacks at most its last second") {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  std::mt19937 random(1);
  for (int run = 0; run < test::effort(12, 4); ++run) {
    const test::Scratch dir;
    auto* shared = new (memory) Shared{};
    const Level level = run % 2 == 0 ? Level::kLaunches : Level::kTally;
    const auto began = Clock::now();
    const pid_t child = ::fork();
    if (child == 0) record_for_ever(dir / "trace.pb", level, *shared, began);
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 2200));
    ::kill(child, SIGKILL);
    const auto lived = (Clock::now() - began) / std::chrono::milliseconds(100);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    // Loaded machines are given another half second, and what they have let another thread wait.
    uint64_t surely = 0;
    for (long slot = 0; slot + 15 + 2 * shared->late < lived; ++slot)
      surely += shared->made[static_cast<size_t>(slot)].load();
    const auto trace = test::read_trace(test::file_bytes(dir / "trace.pb"));
    INFO("run " << run << ", lived " << lived << " x 100 ms");
    REQUIRE(!trace.packets.empty());
    CHECK(test::first_fault(trace) == "");
    CHECK_FALSE(trace.packets.back().has_end());
    CHECK(test::sums(trace).launches >= surely);
  }
  ::munmap(memory, sizeof(Shared));
}
