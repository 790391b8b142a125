// The collector as the edge uses it, from launches to a trace that is read back.
#include <collector/writer/inbox.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "catch.h"
#include "recording.h"
#include "scratch.h"

using namespace flopinj;
using test::first_fault;
using test::Recording;
using test::sums;
namespace pb = flopinj::trace;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kLong = std::chrono::seconds(30);  // which nothing takes, on a loaded machine either

void pause(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

template <class Condition>
bool comes_true(Condition condition) {
  const auto end = Clock::now() + kLong;
  while (!condition() && Clock::now() < end) pause(20);
  return condition();
}

pb::Ledger last_ledger(const test::ReadTrace& trace) {
  pb::Ledger last;
  for (const auto& p : trace.packets)
    if (p.has_ledger()) last = p.ledger();
  return last;
}
std::vector<pb::Diagnostic> diagnostics(const test::ReadTrace& trace) {
  std::vector<pb::Diagnostic> all;
  for (const auto& p : trace.packets)
    if (p.has_diagnostic()) all.push_back(p.diagnostic());
  return all;
}
// The name of every thread, as the last definition has it.
std::map<uint32_t, std::string> thread_names(const test::ReadTrace& trace) {
  std::map<uint32_t, std::string> strings;
  std::map<uint32_t, std::string> names;
  for (const auto& p : trace.packets) {
    for (const auto& s : p.interned().strings()) strings[s.id()] = s.value();
    for (const auto& t : p.interned().threads()) names[t.id()] = strings[t.name()];
  }
  return names;
}
void require_balanced(const pb::Ledger& ledger) {
  for (const auto& d : ledger.device()) REQUIRE(d.launches() == d.recorded() + d.dropped());
}

}  // namespace

TEST_CASE("every launch is in the trace, with its time, signature, path and thread") {
  const Level level = GENERATE(Level::kLaunches, Level::kTally);
  CollectorConfig config;
  config.level = level;
  Recording r(config);
  r.start();
  REQUIRE(r.started);
  r.collector.add_device(DeviceId{1}, {});
  const StreamId stream = r.collector.add_stream(DeviceId{1}, 1, 7);
  CHECK(r.collector.add_stream(DeviceId{1}, 1, 7) == stream);
  const KernelFunction* kernel = r.function("kernel");
  ThreadState* thread = r.collector.add_thread(101);
  uint64_t expected_ns = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    thread->ranges.push({}, i % 2 == 0 ? "even" : "odd");
    const uint32_t x = 1 + i % 10;
    r.launch(*thread, *kernel, x, stream, i % 100 == 0 ? uint32_t{LaunchRecord::kWindowed} : 0U);
    expected_ns += 100ULL * x;
    thread->ranges.pop({});
    if (i == 500) pause(30);
  }
  r.collector.close(EndReason::kExit);
  r.collector.close(EndReason::kFailure);  // does nothing
  const auto trace = r.read();
  CHECK(first_fault(trace) == "");
  const auto s = sums(trace);
  CHECK(s.launches == 1000);
  CHECK(s.timed == 1000);
  CHECK(s.gpu_time_ns == expected_ns);
  CHECK(s.windowed == 10);
  CHECK(s.by_signature.size() == 10);
  for (const auto& [signature, count] : s.by_signature) CHECK(count == 100);
  const auto ledger = last_ledger(trace);
  REQUIRE(ledger.device_size() == 1);
  CHECK(ledger.device(0).device() == 1);
  CHECK(ledger.device(0).launches() == 1000);
  CHECK(ledger.device(0).recorded() == 1000);
  CHECK(ledger.activity_records() == 1000);
  CHECK(ledger.activity_unmatched() == 0);
  CHECK(thread_names(trace).at(thread->id.value) == "worker");
  REQUIRE(trace.packets.back().has_end());
  CHECK(trace.packets.back().end().reason() == pb::End::EXIT);
  CHECK(trace.packets.back().end().packets() == trace.packets.size() - 1);
  bool batches = false;
  bool rows = false;
  for (const auto& p : trace.packets) {
    batches |= p.has_launch_batch();
    rows |= p.has_tally_batch();
  }
  CHECK(batches == (level == Level::kLaunches));
  CHECK(rows == (level == Level::kTally));
}

TEST_CASE("launches reach the trace while the program runs") {
  CollectorConfig config;
  CHECK(config.flush_period_ms <= 1000);
  config.level = GENERATE(Level::kLaunches, Level::kTally);
  const test::Scratch dir;
  Recording r(config);
  r.start(std::move(open_sink(dir / "trace.pb", {}).sink));
  const KernelFunction* kernel = r.function("kernel");
  ThreadState* thread = r.collector.add_thread(1);
  r.launch(*thread, *kernel, 1, r.collector.add_stream(DeviceId{1}, 1, 1));
  CHECK(comes_true([&] {
    const auto trace = test::read_trace(test::file_bytes(dir / "trace.pb"));
    return first_fault(trace) == "" && sums(trace).launches == 1;
  }));
}

TEST_CASE("the header is awaited, so that who starts a recording can read it") {
  auto hang = std::make_shared<std::atomic<bool>>(true);
  Recording r;
  CHECK_FALSE(r.collector.await_header(kLong));  // which does not come
  auto sink = r.sink();
  sink->hang = hang;
  r.start(std::move(sink));
  CHECK_FALSE(r.collector.await_header(std::chrono::milliseconds(20)));
  std::thread later([&] {
    pause(20);
    *hang = false;
  });
  REQUIRE(r.collector.await_header(kLong));
  const auto trace = r.read();
  later.join();
  REQUIRE(trace.packets.size() == 1);
  CHECK(trace.packets[0].has_header());
  CHECK(r.collector.await_header(kLong));
}

TEST_CASE("eight threads launch while a ninth delivers times") {
  CollectorConfig config;
  config.level = GENERATE(Level::kLaunches, Level::kTally);
  config.flush_period_ms = 20;
  config.drain_period_ms = 1;
  Recording r(config);
  r.start();
  const KernelFunction* kernel = r.function("kernel");
  std::atomic<uint64_t> made{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const StreamId stream = r.collector.add_stream(DeviceId{1 + t % 2}, 1, t);
      for (int round = 0; round < 3; ++round) {
        ThreadState* thread = r.collector.add_thread(1000 + t);
        for (uint32_t i = 0; i < 1500; ++i) {
          thread->ranges.push({}, "step " + std::to_string(i % 7));
          r.launch(*thread, *kernel, 1 + i % 50, stream, 0, DeviceId{1 + t % 2});
          thread->ranges.pop({});
          ++made;
        }
        r.collector.diagnostic(Severity::kInfo, "test.round", "a round");
        r.collector.retire_thread(thread);
      }
    });
  for (auto& t : threads) t.join();
  r.collector.flush();
  r.collector.close(EndReason::kExit);
  const auto trace = r.read();
  CHECK(first_fault(trace) == "");
  const auto ledger = last_ledger(trace);
  require_balanced(ledger);
  uint64_t launches = 0;
  for (const auto& d : ledger.device()) launches += d.launches();
  CHECK(launches == made);
  CHECK(ledger.device_size() == 2);
  const auto s = sums(trace);
  CHECK(s.launches + (launches - s.launches) == made);
  CHECK(s.timed == s.launches);
  CHECK(thread_names(trace).size() == 24);  // no thread is lost, no state reused
}

TEST_CASE("what one thread knows of signatures, the next one goes on with") {
  Recording r;
  r.start();
  const KernelFunction* kernel = r.function("kernel");
  ThreadState* first = r.collector.add_thread(1);
  CHECK(first->signatures.empty());
  const Signature* known = r.collector.signature(*first, *kernel, {}, {});
  CHECK_FALSE(first->signatures.empty());
  ThreadState* beside = r.collector.add_thread(2);
  CHECK(beside->signatures.empty());
  r.collector.retire_thread(first);
  ThreadState* next = r.collector.add_thread(3);
  CHECK_FALSE(next->signatures.empty());
  CHECK(r.collector.signature(*next, *kernel, {}, {}) == known);
  CHECK(r.collector.signature(*beside, *kernel, {}, {}) == known);
}

TEST_CASE("tiny rings drop, and every drop is in the ledger") {
  CollectorConfig config;
  config.ring_records = 4;
  config.drain_period_ms = 3;
  config.flush_period_ms = 5;
  Recording r(config);
  r.start();
  const KernelFunction* kernel = r.function("kernel");
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      ThreadState* thread = r.collector.add_thread(t);
      const StreamId stream = r.collector.add_stream(DeviceId{1}, 1, t);
      for (uint32_t i = 0; i < 3000; ++i) {
        r.launch(*thread, *kernel, 1, stream);
        if (i % 100 == 0) pause(1);
      }
      r.collector.retire_thread(thread);
    });
  for (auto& t : threads) t.join();
  r.collector.close(EndReason::kExit);
  const auto trace = r.read();
  CHECK(first_fault(trace) == "");  // at every flush, not only at the end
  const auto ledger = last_ledger(trace);
  REQUIRE(ledger.device_size() == 1);
  CHECK(ledger.device(0).launches() == 12'000);
  CHECK(ledger.device(0).dropped() > 0);
  CHECK(ledger.device(0).recorded() > 0);
  CHECK(ledger.device(0).recorded() == sums(trace).launches);
  require_balanced(ledger);
  REQUIRE(ledger.dropped_size() == 1);
  CHECK(ledger.dropped(0).reason() == "ring_full");
  CHECK(ledger.dropped(0).count() == ledger.device(0).dropped());
}

TEST_CASE("graph launches stand for their nodes; unknown graphs are dropped and counted") {
  Recording r;
  r.start();
  const KernelFunction* kernel = r.function("kernel");
  ThreadState* thread = r.collector.add_thread(1);
  const StreamId stream = r.collector.add_stream(DeviceId{1}, 1, 1);
  const auto signature = [&](uint32_t x) {
    LaunchShape shape;
    shape.grid[0] = x;
    return r.collector.signature(*thread, *kernel, shape, {})->id;
  };
  const std::vector<GraphNode> nodes = {
      {signature(1), {}, 0, 501}, {signature(2), {}, 0, 502}, {signature(1), {}, 0, 503}};
  const GraphId graph = r.collector.add_graph(nodes);
  CHECK(graph);
  CHECK(r.collector.add_graph(nodes) == graph);
  auto other = nodes;
  other[2].node = 504;
  CHECK(r.collector.add_graph(other) != graph);
  LaunchRecord record;
  record.stream = stream;
  record.flags = LaunchRecord::kGraph;
  record.graph = graph;
  for (uint32_t i = 1; i <= 10; ++i) {
    record.correlation = i;
    r.collector.record(*thread, DeviceId{1}, record, 3);
    for (uint64_t n = 501; n <= 503; ++n) r.time({i, n, 10, 10 + n});
  }
  record.graph = GraphId{};
  r.collector.record(*thread, DeviceId{1}, record, 7);
  r.collector.count_dropped("too_many_threads", DeviceId{2}, 5);
  bump(thread->nested_calls, 2);
  r.collector.close(EndReason::kExit);
  const auto trace = r.read();
  CHECK(first_fault(trace) == "");
  const auto s = sums(trace);
  CHECK(s.launches == 30);
  CHECK(s.graph == 30);
  CHECK(s.timed == 30);
  CHECK(s.gpu_time_ns == 10 * (501 + 502 + 503));
  CHECK(s.by_signature.at(nodes[0].signature.value) == 20);
  const auto ledger = last_ledger(trace);
  require_balanced(ledger);
  REQUIRE(ledger.device_size() == 2);
  CHECK(ledger.device(0).launches() == 37);
  CHECK(ledger.device(0).dropped() == 7);
  CHECK(ledger.device(1).device() == 2);
  CHECK(ledger.device(1).launches() == 5);
  CHECK(ledger.device(1).dropped() == 5);
  REQUIRE(ledger.duplicate_size() == 1);
  CHECK(ledger.duplicate(0).count() == 2);
}

TEST_CASE("what a conditional body ran is in the ledger; what starts work unseen is named") {
  Recording r;
  r.start();
  const KernelFunction* kernel = r.function("kernel");
  ThreadState* thread = r.collector.add_thread(1);
  const SignatureId signature = r.collector.signature(*thread, *kernel, {}, {})->id;
  std::vector<GraphNode> nodes = {{signature, {}, 0, 501}, {signature, {}, 0, 502}};
  nodes[0].flags = LaunchRecord::kLaunchesGraphs;
  nodes[1].conditional = true;
  LaunchRecord record;
  record.stream = r.collector.add_stream(DeviceId{1}, 1, 1);
  record.flags = LaunchRecord::kGraph;
  record.graph = r.collector.add_graph(nodes);
  record.correlation = 1;
  r.collector.record(*thread, DeviceId{1}, record, 1);
  r.time({1, 501, 10, 20});
  for (int i = 0; i < 4; ++i) r.time({1, 502, 20, 25});
  record.graph = r.collector.add_graph({nodes[1]});  // nothing but a body, which does not run
  record.correlation = 2;
  r.collector.record(*thread, DeviceId{1}, record, 0);
  LaunchRecord eager;
  eager.signature = signature;
  eager.stream = record.stream;
  eager.flags = LaunchRecord::kLaunchesKernels;
  r.collector.record(*thread, DeviceId{1}, eager);
  r.collector.count_unseen("graph_before_recording", 2);
  r.collector.close(EndReason::kExit);
  const auto trace = r.read();
  CHECK(first_fault(trace) == "");
  CHECK(sums(trace).launches == 1 + 4 + 1);
  CHECK(sums(trace).gpu_time_ns == 10 + 4 * 5);
  const auto ledger = last_ledger(trace);
  require_balanced(ledger);
  REQUIRE(ledger.device_size() == 1);
  CHECK(ledger.device(0).launches() == 6);
  std::map<std::string, uint64_t> unseen;
  for (const auto& reason : ledger.unseen()) unseen[reason.reason()] = reason.count();
  CHECK(unseen == std::map<std::string, uint64_t>{{"graph_before_recording", 2},
                                                  {"kernel_launches_graphs", 1},
                                                  {"kernel_launches_kernels", 1}});
}

TEST_CASE("a launch without a stream is still counted on its device") {
  Recording r;
  r.start();
  const KernelFunction* kernel = r.function("kernel");
  ThreadState* thread = r.collector.add_thread(1);
  r.launch(*thread, *kernel, 1, StreamId{}, 0, DeviceId{3});
  r.launch(*thread, *kernel, 1, StreamId{}, 0, DeviceId{4000});  // beyond the table: its last slot
  r.collector.close(EndReason::kExit);
  const auto ledger = last_ledger(r.read());
  require_balanced(ledger);
  REQUIRE(ledger.device_size() == 2);
  CHECK(ledger.device(0).device() == 3);
  CHECK(ledger.device(1).device() == kMaxDevices);
  CHECK(first_fault(r.read()) == "");
}

TEST_CASE("threads are renamed, and keep their name after they ended") {
  Recording r;
  r.start();
  const KernelFunction* kernel = r.function("kernel");
  const StreamId stream = r.collector.add_stream(DeviceId{1}, 1, 1);
  ThreadState* a = r.collector.add_thread(1);
  r.collector.add_thread(2);  // launches nothing: is not in the trace
  const uint32_t id = a->id.value;
  r.launch(*a, *kernel, 1, stream);
  r.collector.flush();
  CHECK(thread_names(r.read()) == std::map<uint32_t, std::string>{{id, "worker"}});
  r.rename("pt_autograd_0");
  SECTION("alive") {
    pause(1300);
    r.collector.close(EndReason::kExit);
  }
  SECTION("at its end") {
    r.collector.retire_thread(a);
    r.rename("someone else with its number");
    r.collector.close(EndReason::kExit);
  }
  CHECK(thread_names(r.read()) == std::map<uint32_t, std::string>{{id, "pt_autograd_0"}});
}

TEST_CASE("groups, samples and devices are written, definitions first") {
  Recording r;
  r.start();
  DeviceInfo device;
  device.name = "GPU";
  r.collector.add_device(DeviceId{1}, device);
  r.collector.add_device(DeviceId{1}, {});  // described already
  const KernelFunction* kernel = r.function("kernel");
  ThreadState* thread = r.collector.add_thread(1);
  const Signature* s = r.collector.signature(*thread, *kernel, {}, {});
  const auto groups =
      r.collector.add_plan(DeviceId{1}, "GH100", {{"sass", {"a", "b"}, true, true}});
  REQUIRE(groups.size() == 1);
  SampleBatch batch;
  batch.group = groups[0];
  batch.window = 1;
  batch.signatures = {s->id, s->id};
  batch.paths = {PathId{}, PathId{}};
  batch.values = {1, 2, 3, 4};
  r.collector.samples(batch);
  r.collector.close(EndReason::kExit);
  const auto trace = r.read();
  CHECK(first_fault(trace) == "");
  int devices = 0;
  int samples = 0;
  for (const auto& p : trace.packets) {
    if (p.has_device()) {
      ++devices;
      CHECK(p.device().name() == "GPU");
    }
    if (!p.has_counter_samples()) continue;
    ++samples;
    CHECK(p.counter_samples().value_size() == 4);
    CHECK(p.counter_samples().group() == groups[0].value);
  }
  CHECK(devices == 1);
  CHECK(samples == 1);
}

TEST_CASE("diagnostics are written once and counted") {
  Recording r;
  r.collector.diagnostic(Severity::kError, "early", "before the start");
  r.start();
  for (int i = 0; i < 5; ++i) {
    r.collector.diagnostic(Severity::kWarning, "often", "again");
    r.collector.flush();
  }
  r.collector.close(EndReason::kExit);
  const auto all = diagnostics(r.read());
  REQUIRE(all.size() == 3);
  CHECK(all[0].code() == "early");
  CHECK(all[0].severity() == pb::Diagnostic::ERROR);
  CHECK(all[1].code() == "often");
  CHECK(all[1].message() == "again");
  CHECK(all[2].code() == "often");
  CHECK(all[2].message() == "again");
  CHECK(all[2].times() == 5);
  CHECK(all[2].last_message().empty());
}

TEST_CASE("a diagnostic has the first message, the last one and the worst severity") {
  Recording r;
  r.start();
  r.collector.diagnostic(Severity::kWarning, "refused", "tried again in 1 s");
  r.collector.flush();
  r.collector.diagnostic(Severity::kError, "refused", "not measured any more");
  r.collector.diagnostic(Severity::kInfo, "refused", "the last word");
  r.collector.close(EndReason::kExit);
  const auto all = diagnostics(r.read());
  REQUIRE(all.size() == 2);
  CHECK(all[0].severity() == pb::Diagnostic::WARNING);
  CHECK(all[1].severity() == pb::Diagnostic::ERROR);
  CHECK(all[1].message() == "tried again in 1 s");
  CHECK(all[1].last_message() == "the last word");
  CHECK(all[1].last_time_ns() >= all[1].time_ns());
  CHECK(all[1].times() == 3);
}

TEST_CASE("news of a diagnostic are taken ever more rarely, and at the end whatever is new") {
  DiagnosticQueue queue;
  constexpr uint64_t kSecond = 1'000'000'000;
  size_t written = 0;
  std::string last;
  for (uint64_t second = 1; second <= 3'600; ++second) {
    queue.push(Severity::kWarning, "code", "refusal " + std::to_string(second), second * kSecond);
    for (const Diagnostic& said : queue.take(second * kSecond, false)) {
      ++written;
      last = said.last_message;
      CHECK(said.times == second);
    }
    // A process that is killed now leaves a message that is at most as old as half the time.
    if (second > 2) CHECK(std::stoull(last.substr(last.find(' '))) * 2 + 1 >= second);
  }
  CHECK(written <= 13);  // 2^12 s and more
  CHECK(queue.take(3'601 * kSecond, true).at(0).last_message == "refusal 3600");
  CHECK(queue.take(3'602 * kSecond, true).empty());
}

TEST_CASE("a short program's callbacks are all timed, and a cold one speaks for itself alone") {
  constexpr uint64_t kSecond = 1'000'000'000;
  CallbackTimes times;
  uint64_t sum = 0, timed = 0;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const uint64_t took = i == 0 ? kSecond : 100;
    sum += took;
    if (times.begins()) times.took(took), ++timed;
    if (i < CallbackTimes::kOneByOne) CHECK((timed == i + 1 && times.estimate_ns() == sum));
  }
  CHECK(times.count() == 100'000);
  // A last stretch without a timed one is by the mean of all, in which the cold one is.
  CHECK(times.estimate_ns() >= sum);
  CHECK(static_cast<double>(times.estimate_ns()) < static_cast<double>(sum) * 1.001);
  CHECK(timed < 100'000 / CallbackTimes::kMostApart + 300);
}

TEST_CASE("callbacks that take turns are timed alike, rare long ones as often as they come") {
  CallbackTimes in_turn, rarely;
  std::mt19937_64 random(1);
  uint64_t turns = 0, rare = 0;
  for (uint64_t i = 0; i < 3'000'000; ++i) {
    const uint64_t took = i % 2 == 0 ? 1'000 : 0, took_rarely = random() % 1'000 == 0 ? 50'000 : 30;
    turns += took, rare += took_rarely;
    if (in_turn.begins()) in_turn.took(took);
    if (rarely.begins()) rarely.took(took_rarely);
  }
  CHECK_THAT(static_cast<double>(in_turn.estimate_ns()),
             Catch::Matchers::WithinRel(static_cast<double>(turns), 0.001));
  // Of 3,000 long ones some 50 are timed: five of their standard deviations.
  CHECK_THAT(static_cast<double>(rarely.estimate_ns()),
             Catch::Matchers::WithinRel(static_cast<double>(rare), 5 / std::sqrt(50.)));
}

TEST_CASE("where a callback's time is accounted elsewhere the next one is timed") {
  CallbackTimes times;
  CHECK(times.estimate_ns() == 0);
  for (uint64_t i = 0; i < 10; ++i) CHECK(times.begins());
  CHECK((times.count() == 10 && times.estimate_ns() == 0));
  times.took(5);
  CHECK(times.estimate_ns() == 50);
}

TEST_CASE("our own cost is estimated from the callbacks that were timed") {
  Recording r;
  r.start();
  ThreadState* thread = r.collector.add_thread(1);
  for (int i = 0; i < 1000; ++i)
    if (thread->callbacks.begins()) thread->callbacks.took(250);
  bump(thread->nested_calls, 4);
  r.collector.add_startup_ns(5);
  MeasurementWindow window;
  window.device = DeviceId{1};
  window.cost.overhead_ns = 6;
  r.collector.add_plan(DeviceId{1}, "GH100", {{"sass", {"a"}, true, true}});
  r.collector.scheduler().window_succeeded(window, {});
  r.collector.scheduler().add_cost(7);
  r.lost = 9;
  r.collector.close(EndReason::kExit);
  const auto trace = r.read();
  pb::SelfOverhead cost;
  for (const auto& p : trace.packets)
    if (p.has_self_overhead()) cost = p.self_overhead();
  CHECK(cost.launch_callbacks() == 1000);
  CHECK(cost.launch_callback_ns() == 250'000);
  CHECK(cost.startup_ns() == 5);
  CHECK(cost.window_ns() == 13);
  CHECK(cost.window_count() == 1);
  CHECK(cost.helper_cpu_ns() == 77);
  CHECK(cost.bytes_written() > 0);
  CHECK(last_ledger(trace).activity_lost() == 9);
  REQUIRE(last_ledger(trace).duplicate_size() == 1);
  CHECK(last_ledger(trace).duplicate(0).count() == 4);
}

TEST_CASE("a sink that fails mid-run: one line, and the program goes on") {
  Recording r;
  auto sink = r.sink();
  sink->fail_after_writes = 1;
  r.start(std::move(sink));
  const KernelFunction* kernel = r.function("kernel");
  ThreadState* thread = r.collector.add_thread(1);
  for (int i = 0; i < 5; ++i) {
    r.launch(*thread, *kernel, 1, StreamId{});
    r.collector.flush();
  }
  r.collector.close(EndReason::kExit);
  REQUIRE(r.log.size() == 1);
  CHECK(r.log[0] ==
        "writing the trace to memory failed: the memory is full; recording stops here, the program "
        "goes on");
  CHECK(thread->ring.dropped() == 0);  // still drained
}

TEST_CASE("after its sink has failed a collector keeps nothing of threads that end") {
  Recording r;
  auto sink = r.sink();
  sink->fail_after_writes = 1;
  r.start(std::move(sink));
  const KernelFunction* kernel = r.function("kernel");
  const auto memory_after = [&](uint32_t threads) {
    for (uint32_t i = 0; i < threads; ++i) {
      ThreadState* thread = r.collector.add_thread(i + 1);
      REQUIRE(thread != nullptr);
      r.launch(*thread, *kernel, 1, StreamId{});
      r.collector.retire_thread(thread);
      if (i % 100 == 0) r.collector.flush();
    }
    r.collector.flush();
    return mallinfo2().uordblks;
  };
  const size_t before = memory_after(1'000);
  CHECK(memory_after(4'000) < before + 8'192);
  r.collector.close(EndReason::kExit);
}

TEST_CASE("a sink that hangs: close returns in time, and the writer calls no hook afterwards") {
  auto hang = std::make_shared<std::atomic<bool>>(true);
  std::shared_ptr<std::string> bytes;
  {
    CollectorConfig config;
    config.close_timeout_ms = 150;
    Recording r(config);
    bytes = r.bytes;
    auto sink = r.sink();
    sink->hang = hang;
    r.start(std::move(sink));
    const KernelFunction* kernel = r.function("kernel");
    ThreadState* thread = r.collector.add_thread(1);
    r.launch(*thread, *kernel, 1, StreamId{});
    pause(50);
    const auto start = Clock::now();
    r.collector.flush();
    r.collector.close(EndReason::kExit);
    CHECK(Clock::now() - start < kLong);
  }  // the edge and the collector are gone
  *hang = false;
  pause(100);  // the writer wakes up, sees that and ends; a sanitizer tells if it touched what is
               // freed
  SUCCEED();
}

TEST_CASE("close is prompt") {
  CollectorConfig config;
  config.drain_period_ms = 10'000'000;
  config.flush_period_ms = 10'000'000;
  Recording r(config);
  r.start();
  pause(20);
  const auto start = Clock::now();
  r.collector.flush();
  r.collector.close(EndReason::kExit);
  CHECK(Clock::now() - start < kLong);
}

TEST_CASE("a forked child forgets, and the parent's trace is whole", "[fork]") {
  const test::Scratch dir;
  Recording r;
  auto opened = open_sink(dir / "trace.pb", {});
  REQUIRE(opened.sink);
  r.start(std::move(opened.sink));
  const KernelFunction* kernel = r.function("kernel");
  ThreadState* thread = r.collector.add_thread(1);
  for (int i = 0; i < 100; ++i) r.launch(*thread, *kernel, 1, StreamId{});
  for (int forks = 0; forks < 10; ++forks) {
    const pid_t child = ::fork();
    if (child == 0) {
      r.collector.abandon_after_fork();
      LaunchRecord record;
      r.collector.record(*thread, DeviceId{1}, record);
      r.collector.flush();
      r.collector.close(EndReason::kExit);
      const bool dead = r.collector.add_thread(2) == nullptr;
      r.collector.~Collector();
      ::_exit(dead ? 0 : 1);
    }
    r.launch(*thread, *kernel, 1, StreamId{});
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
  }
  r.collector.close(EndReason::kExit);
  const auto trace = test::read_trace(test::file_bytes(dir / "trace.pb"));
  CHECK(first_fault(trace) == "");
  CHECK(sums(trace).launches == 110);
  CHECK(trace.packets.back().has_end());
}

TEST_CASE("a collector that was never started, and one whose threads end before it starts") {
  Recording never;
  never.collector.add_thread(1);
  never.collector.flush();
  never.collector.close(EndReason::kExit);
  CHECK(never.bytes->empty());
  Recording late;
  const KernelFunction* kernel = late.function("kernel");
  ThreadState* thread = late.collector.add_thread(1);
  late.launch(*thread, *kernel, 1, StreamId{});
  late.collector.retire_thread(thread);
  late.start();
  late.collector.close(EndReason::kExit);
  CHECK(sums(late.read()).launches == 1);
}

TEST_CASE("an idle program adds nothing to its trace") {
  CollectorConfig config;
  config.flush_period_ms = 10;
  Recording r(config);
  r.start();
  pause(1300);
  r.collector.flush();
  const size_t packets = r.read().packets.size();
  CHECK(packets <= 8);  // header, and ledger and cost at the start, once more, and at the flush
  r.collector.close(EndReason::kExit);
}

// Steps of 1, 2, 3, ... launches on a thread, twice as many on one that works for it, and one
// launch between two steps.
TEST_CASE("training steps are in the trace with their times, and launches with their steps") {
  CollectorConfig config;
  config.level = GENERATE(Level::kLaunches, Level::kTally);
  config.flush_period_ms = 10;
  config.drain_period_ms = 1;
  std::atomic<uint64_t> clock{1'000'000};
  Recording r(config, [&] { return clock.load(); });
  r.start();
  const KernelFunction* kernel = r.function("kernel");
  const StreamId stream = r.collector.add_stream(DeviceId{1}, 1, 7);
  ThreadState* program = r.collector.add_thread(1);
  ThreadState* autograd = r.collector.add_thread(2);
  REQUIRE(stream);
  constexpr uint32_t kSteps = 20;
  for (uint32_t n = 1; n <= kSteps; ++n) {
    program->ranges.push({}, "train_step " + std::to_string(n));
    for (uint32_t i = 0; i < n; ++i) {
      r.launch(*program, *kernel, 1, stream);
      r.launch(*autograd, *kernel, 2, stream);
      r.launch(*autograd, *kernel, 2, stream);
    }
    clock += 1'000 * n;
    program->ranges.pop({});
    clock += 77;
    r.launch(*program, *kernel, 1, stream);
    if (n == kSteps / 2) pause(30);
  }
  program->ranges.push({}, "step");  // does not end
  r.launch(*program, *kernel, 1, stream);
  r.collector.close(EndReason::kExit);
  const auto trace = r.read();
  CHECK(first_fault(trace) == "");
  const auto by_step = sums(trace).by_step;
  CHECK(by_step.at(0) == kSteps);
  if (config.level == Level::kTally) {
    CHECK(by_step.at(1) == 3 * kSteps * (kSteps + 1) / 2 + 1);
    pb::StepSums sums;
    for (const auto& p : trace.packets)
      if (p.has_step_sums()) sums = p.step_sums();
    CHECK(sums.steps() == kSteps);
    CHECK(sums.total_ns() == 1'000 * kSteps * (kSteps + 1) / 2);
    CHECK(sums.min_ns() == 1'000);
    CHECK(sums.max_ns() == 1'000 * kSteps);
    CHECK(sums.first_start_ns() == 1'000'000);
    CHECK(sums.last_end_ns() == clock - 77);
    CHECK(sums.range_path() != 0);  // first_fault() has looked whether it is defined
    uint64_t counted = 0;
    for (const uint64_t steps : sums.bucket_steps()) counted += steps;
    CHECK(counted == kSteps);
    return;
  }
  for (uint32_t n = 1; n <= kSteps; ++n) CHECK(by_step.at(n) == 3 * n);
  CHECK(by_step.at(kSteps + 1) == 1);
  uint32_t number = 0;
  uint64_t end_ns = 0;
  for (const auto& p : trace.packets) {
    if (!p.has_steps()) continue;
    uint32_t in_message = 0;
    end_ns = p.steps().first_start_ns();
    for (int i = 0; i < p.steps().number_delta_size(); ++i) {
      in_message += static_cast<uint32_t>(p.steps().number_delta(i));
      CHECK(in_message == ++number);
      const uint64_t start_ns = end_ns + static_cast<uint64_t>(p.steps().gap_ns(i));
      CHECK(start_ns == 1'000'000 + 1'000 * number * (number - 1) / 2 + 77 * (number - 1));
      end_ns = start_ns + p.steps().duration_ns(i);
      CHECK(p.steps().duration_ns(i) == 1'000 * number);
    }
  }
  CHECK(number == kSteps);
}
