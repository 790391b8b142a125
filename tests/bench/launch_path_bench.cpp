// What a launch and a range cost on the program's own thread, and a launch with its time on the
// writer's, without CUPTI, or with one that is played.
#include <benchmark/benchmark.h>
#include <collector/identity/fingerprint.h>
#include <collector/schedule/scheduler.h>
#include <collector/writer/launch_merger.h>
#include <collector/writer/thread_state.h>

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "driver/modules/cubin_image.h"
#include "unit/injector/played_gpu.h"

using namespace flopinj;

// Of the session, which there is none of.
namespace flopinj {
Edge* first_edge() noexcept { return nullptr; }
void end_recording_soon() noexcept {}
void capture_range_begun() noexcept {}
}  // namespace flopinj

namespace {

// A kernel with 128 bytes of parameters: four pointers, then integers and floats of 4 bytes.
struct Launcher {
  RangePathTable paths;
  Steps steps{"", [] { return uint64_t{1}; }};
  ProcessRanges process{paths, nullptr, &steps};
  SignatureTable table;
  ThreadState thread{ThreadId{1}, 1, paths, process};
  std::vector<const KernelFunction*> functions;
  LaunchShape shape;
  uint64_t pointers[4] = {0x7f12'0000'0000, 0x7f12'0100'0000, 0x7f12'0200'0000, 0x7f12'0300'0000};
  uint32_t integers[24] = {};
  std::vector<const void*> arguments;

  explicit Launcher(int kernels) {
    for (int k = 0; k < kernels; ++k) {
      FunctionInfo info;
      info.name = "kernel" + std::to_string(k);
      info.parameters_known = true;
      for (uint32_t i = 0; i < 4; ++i) info.parameters.push_back({i * 8, 8});
      for (uint32_t i = 0; i < 24; ++i) info.parameters.push_back({32 + i * 4, 4});
      functions.push_back(table.intern_function(info));
    }
    for (uint64_t& p : pointers) arguments.push_back(&p);
    for (uint32_t& i : integers) arguments.push_back(&i);
    for (uint32_t i = 0; i < 24; ++i) integers[i] = i * 17 + 3;
    thread.ring.allocate(kRingRecords);
  }

  // The launch path as the injector runs it.
  const Signature* launch(const KernelFunction& f) {
    const uint64_t fingerprint = fingerprint_of(f.info, {arguments.data(), nullptr, 0});
    const Signature* s = thread.signatures.find(f, shape, fingerprint);
    if (s == nullptr) {
      s = table.intern_signature(f, shape, fingerprint, 0);
      thread.signatures.insert(f, shape, fingerprint, s);
    }
    benchmark::DoNotOptimize(s->wanted_groups.load(std::memory_order_relaxed));
    LaunchRecord record;
    record.signature = s->id;
    record.path = thread.ranges.path();
    record.sequence_plus_1 = thread.ranges.sequence_plus_1();
    record.called = host_ticks();
    thread.ranges.note(record.called);
    bump(thread.launches[1].made);
    thread.push({record, 1, 1});
    return s;
  }
  void drain() {
    thread.ring.drain([](const RingRecord& r) { benchmark::DoNotOptimize(r.path); });
  }
};

// Drains as often as the ring needs; its cost is part of the figure, a few ns.
void known_signature(benchmark::State& state, bool host_times) {
  host_clock = host_times ? cpu_ticks : nullptr;
  Launcher launcher(static_cast<int>(state.range(0)));
  size_t next = 0;
  uint32_t since_drain = 0;
  for (auto _ : state) {
    launcher.launch(*launcher.functions[next]);
    if (++next == launcher.functions.size()) next = 0;
    if (++since_drain == kRingRecords / 2) {
      since_drain = 0;
      launcher.drain();
    }
  }
}
BENCHMARK_CAPTURE(known_signature, plain, false)->ArgName("kernels")->Arg(1)->Arg(200);
BENCHMARK_CAPTURE(known_signature, plain, false)->ArgName("kernels")->Arg(200)->ThreadRange(1, 8);
BENCHMARK_CAPTURE(known_signature, host_times, true)->ArgName("kernels")->Arg(1)->Arg(200);

// Both callbacks of a launch, ENTER and EXIT, as CUPTI calls them: all that the library does on the
// program's thread. Kernels as above; no counters are read.
struct CalledBack {
  static constexpr uint32_t kPointers = 4, kIntegers = 24;
  // As a simulated module has them.
  static std::string image(const std::vector<test::PlayedGpu::Launch>& launches) {
    simgpu::ptx::Kernel kernel;
    kernel.parameter_bytes = kPointers * 8 + kIntegers * 4;
    for (uint32_t i = 0; i < kPointers + kIntegers; ++i) {
      const bool pointer = i < kPointers;
      kernel.parameters.push_back(
          {.bytes = pointer ? 8U : 4U,
           .offset = pointer ? i * 8 : kPointers * 8 + (i - kPointers) * 4});
    }
    std::vector<simgpu::ptx::Kernel> kernels(launches.size(), kernel);
    for (size_t i = 0; i < kernels.size(); ++i) kernels[i].name = launches[i].name;
    const auto cubin = simgpu::make_cubin(kernels, {}, 90);
    return {reinterpret_cast<const char*>(cubin.data()), cubin.size()};
  }

  test::PlayedGpu gpu;
  std::vector<test::PlayedGpu::Launch> launches;
  Launcher values{0};
  uint32_t correlation = 1'000'000;

  explicit CalledBack(size_t kernels) : launches(kernels) {
    gpu.edge.measures = false;
    gpu.tracer.reset();
    gpu.tracer.emplace(gpu.edge);
    std::string error;
    gpu.tracer->subscribe(error);
    gpu.enable();
    for (test::PlayedGpu::Launch& launch : launches) {
      gpu.prepare(launch);
      launch.parameters.kernelParams = const_cast<void**>(values.arguments.data());
    }
    gpu.module(CUPTI_CBID_RESOURCE_MODULE_LOADED, 1, image(launches));
  }
  void launch(test::PlayedGpu::Launch& launch) {
    launch.call.correlation = ++correlation;
    gpu.enter(launch.call);
    gpu.run();
    gpu.exit(launch.call);
  }
};

void known_callbacks(benchmark::State& state) {
  constexpr uint32_t kWarm = 20'000, kBeforeDrain = kRingRecords / 2;
  CalledBack called(static_cast<size_t>(state.range(0)));
  size_t next = 0;
  uint32_t since_drain = 0;
  const auto launch = [&] {
    called.launch(called.launches[next]);
    if (++next == called.launches.size()) next = 0;
  };
  for (uint32_t i = 0; i < kWarm; ++i) {
    launch();
    if (i % kBeforeDrain == 0) called.gpu.collector.flush();
  }
  for (auto _ : state) {
    launch();
    if (++since_drain == kBeforeDrain) {
      since_drain = 0;
      state.PauseTiming();
      called.gpu.collector.flush();
      state.ResumeTiming();
    }
  }
}
BENCHMARK(known_callbacks)->ArgName("kernels")->Arg(1)->Arg(200);

void fingerprint_128_bytes(benchmark::State& state) {
  Launcher launcher(1);
  for (auto _ : state) {
    launcher.integers[0]++;
    benchmark::DoNotOptimize(
        fingerprint_of(launcher.functions[0]->info, {launcher.arguments.data(), nullptr, 0}));
  }
}
BENCHMARK(fingerprint_128_bytes);

void fingerprint_4_kib_structure(benchmark::State& state) {
  FunctionInfo info;
  info.parameters_known = true;
  info.parameters = {{0, 4'096}};
  std::vector<uint64_t> bytes(512, 12'345);
  const void* arguments[] = {bytes.data()};
  for (auto _ : state) {
    bytes[0]++;
    benchmark::DoNotOptimize(fingerprint_of(info, {arguments, nullptr, 0}));
  }
}
BENCHMARK(fingerprint_4_kib_structure);

// The same bytes as one structure, as PyTorch's and CUTLASS's kernels take them.
void fingerprint_128_byte_structure(benchmark::State& state) {
  FunctionInfo info;
  info.parameters_known = true;
  info.parameters = {{0, 128}};
  uint64_t bytes[16] = {0x7f12'0000'0000, 0x7f12'0100'0000, 12'345, 0};
  const void* arguments[] = {bytes};
  for (auto _ : state) {
    bytes[15]++;
    benchmark::DoNotOptimize(fingerprint_of(info, {arguments, nullptr, 0}));
  }
}
BENCHMARK(fingerprint_128_byte_structure);

// A new fingerprint every time: past the bound, all of them in the merged class.
void merged_signature(benchmark::State& state) {
  Launcher launcher(1);
  uint32_t since_drain = 0;
  for (auto _ : state) {
    ++launcher.integers[0];
    launcher.launch(*launcher.functions[0]);
    if (++since_drain == kRingRecords / 2) {
      since_drain = 0;
      launcher.drain();
    }
  }
}
BENCHMARK(merged_signature);

// A signature the process has not seen: interned.
void new_signature(benchmark::State& state) {
  SignatureTable table;
  FunctionInfo info;
  info.name = "kernel";
  info.parameters_known = true;
  const KernelFunction& f = *table.intern_function(info);
  LaunchShape shape;
  for (auto _ : state) {
    ++shape.grid[0];
    benchmark::DoNotOptimize(table.intern_signature(f, shape, 1, 0));
  }
}
BENCHMARK(new_signature)->Iterations(200'000);

// The same by several threads, into one table.
void new_signature_shared(benchmark::State& state) {
  static SignatureTable* table;
  static const KernelFunction* function;
  if (state.thread_index() == 0) {
    table = new SignatureTable;
    FunctionInfo info;
    info.name = "kernel";
    info.parameters_known = true;
    function = table->intern_function(info);
  }
  LaunchShape shape;
  shape.grid[1] = static_cast<uint32_t>(state.thread_index()) + 1;
  for (auto _ : state) {
    ++shape.grid[0];
    benchmark::DoNotOptimize(table->intern_signature(*function, shape, 1, 0));
  }
  if (state.thread_index() == 0) delete table;
}
BENCHMARK(new_signature_shared)->Iterations(20'000)->ThreadRange(1, 8);

// One device with a plan, one context, threads that launch one kernel of their own each: what the
// scheduler and the device's lock add to a launch. The clock is read as often as the injector
// does.
struct MeasuredContext {
  SignatureTable table;
  SchedulerConfig config;
  MeasurementScheduler scheduler{config, table};
  std::timed_mutex lock;
  MeasurementWindow window;
  std::vector<const Signature*> kernels;

  static SchedulerConfig unlimited() {
    SchedulerConfig c;
    c.budget = MeasuringBudget::kUnlimited;
    return c;
  }
  MeasuredContext() : config(unlimited()) {
    scheduler.add_plan(kDevice, "GH100", {{"sass", {"a"}, true, true}});
    for (uint32_t i = 0; i < 8; ++i) {
      FunctionInfo info;
      info.name = "kernel" + std::to_string(i);
      kernels.push_back(
          table.intern_signature(*table.intern_function(info), {}, 0, scheduler.initial_wanted()));
    }
    window.device = kDevice;
    window.rows.reserve(config.max_ranges);
  }
  static uint64_t now() {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  std::unique_lock<std::timed_mutex> locked() {
    return std::unique_lock(lock, std::chrono::system_clock::now() + std::chrono::seconds(2));
  }
  static constexpr DeviceId kDevice{1};
};

MeasuredContext*& shared_context(benchmark::State& state) {
  static MeasuredContext* context;
  if (state.thread_index() == 0) context = new MeasuredContext;
  return context;
}

// Inside a window: the lock from ENTER to EXIT, a row. The kernel's own time is not in it.
void window_open(benchmark::State& state) {
  MeasuredContext*& context = shared_context(state);
  for (auto _ : state) {
    MeasuredContext& c = *context;
    const Signature* s = c.kernels[static_cast<size_t>(state.thread_index()) % c.kernels.size()];
    const auto held = c.locked();
    benchmark::DoNotOptimize(c.scheduler.decide(c.kDevice, *s, &c.window, c.now()));
    const uint64_t began = c.now();
    const uint64_t ended = c.now();
    c.scheduler.row_added(c.window, {s, {}, 1, false, ended - began}, ended);
    if (c.window.rows.size() == c.config.max_ranges) c.window.rows.clear();
  }
  if (state.thread_index() == 0) delete context;
}
BENCHMARK(window_open)->ThreadRange(1, 8)->UseRealTime();

// The signature wants something, a round is armed for it perhaps: the lock and the decision.
void slow_decision(benchmark::State& state) {
  MeasuredContext*& context = shared_context(state);
  for (auto _ : state) {
    MeasuredContext& c = *context;
    const Signature* s = c.kernels[static_cast<size_t>(state.thread_index()) % c.kernels.size()];
    if (!c.scheduler.may_want(c.kDevice, *s)) continue;
    const auto held = c.locked();
    benchmark::DoNotOptimize(c.scheduler.decide(c.kDevice, *s, &c.window, c.now()));
  }
  if (state.thread_index() == 0) delete context;
}
BENCHMARK(slow_decision)->ThreadRange(1, 8)->UseRealTime();

// As on a thread of autograd's: no range around it is a step, so each could be one.
void push_pop(benchmark::State& state, const char* name, bool host_times) {
  host_clock = host_times ? cpu_ticks : nullptr;
  Launcher launcher(1);
  launcher.steps.begin();
  launcher.thread.ranges.push({}, "network");
  launcher.thread.ranges.push({}, "forward");
  for (auto _ : state) {
    launcher.thread.ranges.push({}, name);
    benchmark::DoNotOptimize(launcher.thread.ranges.path());
    launcher.thread.ranges.pop({});
  }
}
BENCHMARK_CAPTURE(push_pop, short_name, "layer1.conv2", false);
BENCHMARK_CAPTURE(push_pop, host_times, "layer1.conv2", true);
BENCHMARK_CAPTURE(push_pop, pytorch_name,
                  "aten::conv2d, seq = 3, op_id = 7, sizes = [[64, 3, 224, 224], [64, 3, 7, 7]]",
                  false);

// The writer's part for a launch and its time: 4 threads with a stream each, times that come after
// some hundred launches, and a release for every 4,000.
void merged_time(benchmark::State& state) {
  constexpr uint32_t kStreams = 4, kBehind = 400, kRelease = 4'000;
  LaunchMerger merger(true);
  const LaunchMerger::Release out = [](const LaunchMerger::Origin&, const TimedLaunch& launch) {
    benchmark::DoNotOptimize(launch.end_ns);
  };
  const LaunchMerger::Late late = [](const TallyRow&) {};
  uint32_t correlation = 0;
  std::vector<KernelTime> times(kBehind);
  for (auto _ : state) {
    LaunchRecord record;
    record.signature = SignatureId{1 + correlation % 200};
    record.correlation = ++correlation;
    const uint32_t stream = 1 + correlation % kStreams;
    merger.launch({ThreadId{stream}, StreamId{stream}, DeviceId{1}}, record);
    if (correlation % kBehind == 0) {
      const uint32_t first = correlation - kBehind + 1;
      for (uint32_t i = 0; i < kBehind; ++i)
        times[i] = {.correlation = first + i,
                    .graph_node = 0,
                    .start_ns = 100ULL * (first + i),
                    .end_ns = 100ULL * (first + i) + 90};
      merger.times(times);
    }
    if (correlation % kRelease == 0) merger.release(4, false, out, late);
  }
}
BENCHMARK(merged_time);

// Not in the thread's cache: what the shared table's lock costs.
void table_lookup(benchmark::State& state) {
  static RangePathTable table;
  const PathId parent = table.child({}, {}, "parent", RangeKind::kThread);
  for (auto _ : state)
    benchmark::DoNotOptimize(table.child(parent, {}, "layer1.conv2", RangeKind::kThread));
}
BENCHMARK(table_lookup)->Threads(1)->Threads(2);

}  // namespace

BENCHMARK_MAIN();
