// The launch path of a known signature allocates nothing and takes no lock, and the writer
// allocates nothing for a launch and its time: this program counts every allocation and every lock
// of each thread. It also refuses memory, to containers that want to grow.
#include <collector/collector.h>
#include <collector/identity/fingerprint.h>
#include <collector/writer/flat_table.h>
#include <collector/writer/launch_merger.h>
#include <collector/writer/ring_queue.h>
#include <collector/writer/thread_state.h>
#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <new>
#include <string>
#include <thread>

#include "catch.h"
#include "memory_sink.h"

namespace {

thread_local uint64_t allocations = 0, locks = 0;
thread_local bool no_memory = false;

void* counted(std::size_t size) {
  ++allocations;
  if (no_memory) return nullptr;
  return std::malloc(size == 0 ? 1 : size);
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// What std::mutex, std::shared_mutex and std::timed_mutex come to.
#define COUNTED_LOCK(name, lock_type)                          \
  extern "C" int name(lock_type* lock) {                       \
    static const auto real = next<int (*)(lock_type*)>(#name); \
    ++locks;                                                   \
    return real(lock);                                         \
  }
COUNTED_LOCK(pthread_mutex_lock, pthread_mutex_t)
COUNTED_LOCK(pthread_mutex_trylock, pthread_mutex_t)
COUNTED_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)

void* operator new(std::size_t size) {
  if (void* p = counted(size)) return p;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void* operator new(std::size_t size, std::align_val_t align) {
  ++allocations;
  const auto a = static_cast<std::size_t>(align);
  if (void* p = std::aligned_alloc(a, (size + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

using namespace flopinj;

namespace {

struct Program {
  RangePathTable paths;
  ProcessRanges process{paths};
  SignatureTable table;
  ThreadState thread{ThreadId{1}, 100, paths, process};
  const KernelFunction* function = nullptr;
  LaunchShape shape;
  uint64_t arguments[16] = {};  // 128 bytes
  const void* pointers[16] = {};

  Program() {
    FunctionInfo info;
    info.name = "kernel";
    info.parameters_known = true;
    for (uint32_t i = 0; i < 16; ++i) {
      info.parameters.push_back({i * 8, 8});
      arguments[i] = i;
      pointers[i] = &arguments[i];
    }
    function = table.intern_function(info);
    thread.ring.allocate(64);
  }
  const Signature* launch() {
    const uint64_t fingerprint = fingerprint_of(function->info, {pointers, nullptr, 0});
    const Signature* s = thread.signatures.find(*function, shape, fingerprint);
    if (s == nullptr) {
      s = table.intern_signature(*function, shape, fingerprint, 0);
      thread.signatures.insert(*function, shape, fingerprint, s);
    }
    LaunchRecord record;
    record.signature = s->id;
    record.path = thread.ranges.path();
    record.sequence_plus_1 = thread.ranges.sequence_plus_1();
    thread.push({record, 1, 1});
    bump(thread.launches[1].made);
    return s;
  }
  void step(uint32_t number) {
    const std::string names[] = {
        "forward", "a layer whose name does not fit in a small string",
        "aten::convolution, seq = " + std::to_string(number) + ", op_id = 7, sizes = [[64, 3]]"};
    const uint64_t before = allocations;
    for (const std::string& name : names) {
      thread.ranges.push({}, name);
      launch();
    }
    for (size_t i = 0; i < std::size(names); ++i) thread.ranges.pop({});
    seen = allocations - before;
  }
  uint64_t seen = 0;
};

}  // namespace

TEST_CASE("a known launch allocates nothing") {
  Program program;
  const uint64_t before = allocations;
  const Signature* first = program.launch();
  CHECK(allocations > before);  // the count works
  bool same = true;
  const uint64_t warm = allocations;
  for (int i = 0; i < 10'000; ++i) same &= program.launch() == first;
  const uint64_t after = allocations;
  CHECK(after == warm);
  CHECK(same);
  CHECK(program.thread.ring.dropped() != 0);  // a full ring neither
}

TEST_CASE("the writer allocates nothing for a launch and its time") {
  LaunchMerger merger(true);
  uint64_t timed = 0;
  const LaunchMerger::Release out = [&timed](const LaunchMerger::Origin&, const TimedLaunch& one) {
    timed += one.end_ns != 0 ? 1 : 0;
  };
  const LaunchMerger::Late late = [](const TallyRow&) {};
  uint32_t correlation = 0;
  const auto work = [&](int releases) {
    for (int i = 0; i < releases; ++i) {
      for (uint32_t launch = 0; launch < 1'000; ++launch) {
        LaunchRecord record;
        record.signature = SignatureId{1};
        record.correlation = ++correlation;
        const uint32_t stream = 1 + correlation % 3;
        merger.launch({ThreadId{stream}, StreamId{stream}, DeviceId{1}}, record);
      }
      for (uint32_t id = correlation - 999; id <= correlation; ++id) {
        const KernelTime time{id, 0, 10ULL * id, 10ULL * id + 5};
        merger.times({&time, 1});
      }
      merger.release(4, false, out, late);
    }
  };
  work(3);
  const uint64_t warm = allocations;
  work(50);
  CHECK(allocations == warm);
  CHECK(timed == correlation);
}

TEST_CASE("a step of known ranges and launches allocates nothing") {
  Program program;
  program.step(1);
  CHECK(program.seen > 0);
  uint64_t total = 0;
  for (uint32_t i = 2; i < 1'000; ++i) {
    program.step(i);
    total += program.seen;
  }
  CHECK(total == 0);
}

TEST_CASE("the whole path of a measured signature takes no lock and allocates nothing") {
  Collector collector({}, {});
  REQUIRE(collector.start(std::make_unique<flopinj::test::MemorySink>(), {}));
  collector.add_plan(DeviceId{1}, "GH100", {{"sass", {"a"}, true, true}});
  ThreadState* const thread = collector.add_thread(1);
  const auto function = [&](const std::string& name) {
    FunctionInfo info;
    info.name = name;
    return collector.add_function(info);
  };
  const KernelFunction* const kernel = function("kernel");
  MeasurementScheduler& scheduler = collector.scheduler();
  // What the injector does at a launch, but for its own caches of handles.
  const auto launch = [&] {
    const Signature* s = collector.signature(*thread, *kernel, {}, {});
    const bool wants = s->wanted_groups.load(std::memory_order_relaxed) != 0 &&
                       !scheduler.stopped() && scheduler.may_want(DeviceId{1}, *s);
    LaunchRecord record;
    record.signature = s->id;
    record.path = thread->ranges.path();
    collector.record(*thread, DeviceId{1}, record);
    return wants ? s : nullptr;
  };
  const uint64_t locks_before = locks, allocations_before = allocations;
  while (const Signature* s = launch()) {  // its first samples
    const LaunchDecision decision = scheduler.decide(DeviceId{1}, *s, nullptr, 0);
    REQUIRE(decision.open);
    MeasurementWindow window;
    window.device = DeviceId{1};
    scheduler.row_added(window, {s, {}, 0, true, 0}, 0);
    scheduler.window_succeeded(window, std::vector<double>{1});
  }
  CHECK(locks > locks_before);  // the counts work
  CHECK(allocations > allocations_before);
  collector.flush();

  // Another thread adds kernels meanwhile, and the writer drains: neither is felt.
  std::thread other([&] {
    ThreadState* const state = collector.add_thread(2);
    for (int i = 0; i < 200; ++i)
      collector.signature(*state, *function("other " + std::to_string(i)), {}, {});
    collector.retire_thread(state);
  });
  uint64_t most_locks = 0;
  uint64_t most_allocations = 0;
  uint32_t wanted = 0;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t locks_then = locks, allocations_then = allocations;
    wanted += launch() != nullptr;
    if (wanted != 0) break;  // a round is armed: no steady state
    most_locks = std::max(most_locks, locks - locks_then);
    most_allocations = std::max(most_allocations, allocations - allocations_then);
  }
  other.join();
  CHECK(most_locks == 0);
  CHECK(most_allocations == 0);
}

TEST_CASE("a thread that launches nothing is small") { CHECK(sizeof(ThreadState) <= 2'048); }

TEST_CASE("a container that gets no memory to grow keeps what it holds") {
  FlatTable<uint64_t> table;
  RingQueue<uint64_t> queue;
  constexpr uint32_t kMost = 1'000;
  uint32_t in_table = 0, in_queue = 0;
  const auto fill = [&] {
    while (in_table < kMost) {
      table.insert({in_table, 7}, in_table);
      ++in_table;
    }
  };
  const auto fill_queue = [&] {
    while (in_queue < kMost) {
      *queue.push_back().first = in_queue;
      ++in_queue;
    }
  };
  table.insert({in_table, 7}, in_table);
  ++in_table;
  *queue.push_back().first = in_queue;
  ++in_queue;

  bool table_refused = false, queue_refused = false;
  no_memory = true;  // what is checked in between would need some
  try {
    fill();
  } catch (const std::bad_alloc&) {
    table_refused = true;
  }
  try {
    fill_queue();
  } catch (const std::bad_alloc&) {
    queue_refused = true;
  }
  no_memory = false;
  REQUIRE(table_refused);
  REQUIRE(queue_refused);

  const auto check = [&] {
    REQUIRE(table.size() == in_table);
    for (uint32_t i = 0; i < in_table; ++i) {
      auto* const entry = table.find({i, 7});
      REQUIRE(entry != nullptr);
      REQUIRE(entry->value == i);
    }
    REQUIRE(queue.size() == in_queue);
    for (uint32_t i = 0; i < in_queue; ++i) REQUIRE(queue[i] == i);
  };
  check();
  fill();  // with memory again
  fill_queue();
  check();
}
