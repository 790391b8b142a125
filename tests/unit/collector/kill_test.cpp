// Killed at any moment, the trace is readable and balanced up to its last second.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

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

}  // namespace

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
