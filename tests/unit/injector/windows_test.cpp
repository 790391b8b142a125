// Windows and counters beside work that waits, behind the library's callback.
#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "catch.h"
#include "unit/collector/trace_reader.h"
#include "unit/injector/played_gpu.h"

using namespace flopinj;
using namespace std::chrono_literals;
using test::PlayedGpu;

namespace {

// A program whose collectives are in flight whenever `gpu.busy`.
struct Program {
  explicit Program(const PlayedGpu::Recorded& recorded = {}) : gpu(recorded) {
    REQUIRE(gpu.enable());
  }

  void collective(CUcontext context = PlayedGpu::the_context()) {
    auto call = gpu.call(CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc, host_function);
    call.context = context;
    made(call);
  }
  // A call that waits for the GPU, and returns when all that was in flight has ended. Of the whole
  // context that is known then; of another stream the driver is asked.
  void synchronize(std::chrono::milliseconds takes = 3ms,
                   CUcontext context = PlayedGpu::the_context()) {
    auto call = whole ? gpu.call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, none)
                      : gpu.call(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, other_stream);
    call.context = context;
    gpu.enter(call);
    std::this_thread::sleep_for(takes);
    gpu.busy = false;
    gpu.exit(call);
  }
  // Of a kernel that wants to be measured. Whether it was.
  bool launch(CUcontext context = PlayedGpu::the_context(), bool loads_module = false) {
    PlayedGpu::Launch launch;
    gpu.prepare(launch);
    launch.call.context = context;
    const uint32_t before = gpu.measured;
    gpu.enter(launch.call);
    if (loads_module) gpu.resource(CUPTI_CBID_RESOURCE_MODULE_LOADED, CUstream{}, context);
    gpu.run(context);
    gpu.exit(launch.call);
    return gpu.measured > before;
  }
  void made(const PlayedGpu::Call& call) {
    gpu.enter(call);
    gpu.exit(call);
    gpu.busy = true;
  }

  PlayedGpu gpu;
  cuLaunchHostFunc_params host_function{reinterpret_cast<CUstream>(uintptr_t{0x2000}), nullptr,
                                        nullptr};
  cuStreamSynchronize_params other_stream{reinterpret_cast<CUstream>(uintptr_t{0x3000})};
  int none = 0;
  bool whole = true;
};

// A clock of the program's that goes only where the test moves it.
struct HeldClock {
  static inline std::atomic<uint64_t> now{1'000'000'000}, asked{0};
  static uint64_t ns() noexcept { return ++asked, now.load(); }
  // The planner's thread has looked at it so often since.
  static bool is_looked_at() {
    const uint64_t before = asked;
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (asked < before + 8 && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(1ms);
    return asked >= before + 8;
  }
};

size_t occurrences(const std::string& text, const std::string& of) {
  size_t count = 0;
  for (size_t at = text.find(of); at != text.npos; at = text.find(of, at + 1)) ++count;
  return count;
}

template <class Condition>
bool comes_true(Condition condition, std::chrono::milliseconds most) {
  const auto give_up = std::chrono::steady_clock::now() + most;
  while (!condition() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(1ms);
  return condition();
}

}  // namespace

TEST_CASE("behind a call that waits for the GPU windows open; before it none does") {
  Program program;
  program.whole = GENERATE(true, false);
  program.launch();
  program.collective();
  const uint32_t before = program.gpu.windows;
  for (int i = 0; i < 50; ++i) CHECK_FALSE(program.launch());
  CHECK(program.gpu.windows == before);
  program.synchronize();
  if (program.whole) CHECK(program.launch());
  CHECK(comes_true(  // the planner's thread may be slow to answer
      [&] {
        program.synchronize();
        return program.launch();
      },
      20s));
  CHECK(program.gpu.windows > before);
}

TEST_CASE("behind a copy of rows to the host windows open, as behind any call that waits") {
  Program program;
  program.launch();
  program.collective();
  for (int i = 0; i < 50; ++i) CHECK_FALSE(program.launch());
  const auto copies =
      program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DUnaligned_v2, program.none);
  CHECK(comes_true(  // the planner's thread may be slow to answer
      [&] {
        program.gpu.enter(copies);
        std::this_thread::sleep_for(3ms);
        program.gpu.busy = false;
        program.gpu.exit(copies);
        return program.launch();
      },
      20s));
}

TEST_CASE("a window is closed before a collective, and a launch behind it waits for its end") {
  Program program;
  program.launch();
  program.collective();
  program.synchronize(400ms);  // of which a launch may wait for a half
  REQUIRE(program.launch());
  program.collective();
  CHECK_FALSE(program.gpu.window_open);
  program.gpu.streams_asked = 0;
  program.gpu.edge.cuda.StreamQuery = [](CUstream) {  // the work ends while the launch waits
    PlayedGpu& gpu = *PlayedGpu::played();
    gpu.busy = ++gpu.streams_asked < 3;
    return gpu.busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  };
  CHECK(program.launch());
  CHECK(program.gpu.streams_asked >= 3);
}

TEST_CASE(
    "a thread that waits for one device after the other has waited for the last of them, too") {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point ends;
  const bool whole = GENERATE(true, false);
  const auto other = reinterpret_cast<CUcontext>(uintptr_t{0x9000});
  bool measured = false;
  for (int attempt = 0; !measured && attempt < 5; ++attempt) {  // a busy machine comes too late
    Program program;
    program.launch();
    program.whole = whole;
    program.collective(other);
    program.collective();
    program.synchronize(400ms, other);
    std::this_thread::sleep_for(1'500ms);  // the host's own work is no part of it
    program.synchronize(0ms);  // all has ended: what a launch may wait is a half of those 400 ms
    if (!program.launch()) continue;
    program.collective();
    ends = Clock::now() + 50ms;
    program.gpu.edge.cuda.StreamQuery = [](CUstream) {
      return Clock::now() < ends ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    };
    measured = program.launch();
  }
  CHECK(measured);
}

TEST_CASE("a launch does not wait for ever, and no launch where the program never waits") {
  Program program;
  program.launch();
  program.collective();
  const auto began = std::chrono::steady_clock::now();
  const uint32_t asked = program.gpu.streams_asked;
  for (int i = 0; i < 20; ++i) CHECK_FALSE(program.launch());
  // A launch that waits asks twenty times in a millisecond.
  const auto ms = (std::chrono::steady_clock::now() - began) / 1ms;
  CHECK(program.gpu.streams_asked - asked <= static_cast<uint64_t>(ms) + 2);
  program.synchronize(20ms);
  program.collective();  // it never ends
  const auto waits = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) CHECK_FALSE(program.launch());
  const auto took = std::chrono::steady_clock::now() - waits;
  CHECK(took > 10ms);  // one has waited
  CHECK(took < 10s);
}

TEST_CASE("without a budget a launch waits for an answer that comes late") {
  const bool bounded = GENERATE(true, false);
  Program program({.bounded_waits = bounded});
  program.launch();
  program.collective();
  program.gpu.edge.cuda.StreamQuery = [](CUstream) {  // it ended long ago, and all cores are busy
    std::this_thread::sleep_for(100ms);
    return CUDA_SUCCESS;
  };
  CHECK(program.launch() == !bounded);
}

TEST_CASE("counters are given back at a call that waits for the GPU, and not beside collectives") {
  Program program;
  REQUIRE(program.launch());
  program.collective();
  REQUIRE(program.gpu.enabled == 1);
  // Longer than a lease lasts.
  CHECK_FALSE(comes_true([&] { return program.gpu.disabled != 0; }, 2'500ms));
  program.synchronize();
  CHECK(program.gpu.disabled == 1);
  CHECK_FALSE(program.gpu.window_open);
}

TEST_CASE("while counters are given back collectives are held up, and no other launch is") {
  std::atomic<bool> began{false}, may_end{false}, collective_made{false};
  Program program;
  program.gpu.disabling = [&] {
    began = true;
    while (!may_end) std::this_thread::sleep_for(1ms);
  };
  REQUIRE(program.launch());
  REQUIRE(comes_true([&] { return began.load(); }, 10s));  // nothing was launched for a while
  std::thread other([&] {
    program.collective();
    collective_made = true;
  });
  CHECK_FALSE(program.launch());  // at once
  CHECK_FALSE(comes_true([&] { return collective_made.load(); }, 100ms));
  may_end = true;
  other.join();
  CHECK(collective_made);
}

TEST_CASE("counters that a launch has asked for in vain are kept for it") {
  Program program;
  REQUIRE(program.launch());
  program.collective();
  std::this_thread::sleep_for(2'500ms);
  CHECK_FALSE(program.launch());
  program.synchronize();
  CHECK(program.gpu.disabled == 0);
  CHECK(program.launch());
  CHECK(program.gpu.enabled == 1);
}

TEST_CASE("a launch that has to give counters back does so at the cost of the budget") {
  static std::thread::id launching;
  launching = std::this_thread::get_id();
  Program program;
  program.gpu.edge.cupti.RangeProfilerDisable = [](CUpti_RangeProfiler_Disable_Params*) {
    if (std::this_thread::get_id() != launching) return CUPTI_ERROR_INVALID_OPERATION;
    std::this_thread::sleep_for(20ms);
    return ++PlayedGpu::played()->disabled, CUPTI_SUCCESS;
  };
  REQUIRE(program.launch());
  uint64_t before = 0;
  REQUIRE(comes_true(
      [&] {
        if (program.gpu.disabled == 1) return true;
        before = program.gpu.collector.scheduler().spent_ns();
        const cuGraphLaunch_params unknown{};  // it wants no window
        const auto launch = program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, unknown);
        program.gpu.enter(launch);
        program.gpu.exit(launch);
        return false;
      },
      10s));
  CHECK(program.gpu.collector.scheduler().spent_ns() - before >= 20'000'000);
}

TEST_CASE("counters come back to a launch behind a call that waits for the GPU") {
  Program program;
  REQUIRE(program.launch());
  REQUIRE(comes_true([&] { return program.gpu.disabled == 1; }, 10s));
  program.collective();
  program.synchronize(20ms);
  std::this_thread::sleep_for(1'200ms);  // the pause behind a short lease
  CHECK(comes_true([&] { return program.launch(); }, 5s));
  CHECK(program.gpu.enabled == 2);
}

TEST_CASE("what was not measured is said, and how often") {
  Program program;
  program.collective();
  for (int i = 0; i < 30; ++i) CHECK_FALSE(program.launch());
  const auto counted = [&] { return program.gpu.collector.scheduler().coverage().launches; };
  REQUIRE(comes_true([&] { return counted() == 30; }, 60s));  // the writer counts launches
  uint64_t times = 0;
  for (const auto& packet : test::read_trace(program.gpu.trace()).packets)
    if (packet.diagnostic().code() == "counters.in_flight") times = packet.diagnostic().times();
  CHECK(times == 30);
}

TEST_CASE("counters that are busy as windows are closed are asked for again") {
  Program program;
  static std::atomic<bool> busy{true};
  program.gpu.edge.cupti.RangeProfilerStop = [](CUpti_RangeProfiler_Stop_Params*) {
    PlayedGpu::played()->window_open = false;
    return busy ? CUPTI_ERROR_HARDWARE_BUSY : CUPTI_SUCCESS;
  };
  for (int i = 0; i < 3; ++i) {
    program.launch();
    program.gpu.end_window();
  }
  busy = false;
  CHECK(comes_true([&] { return program.launch(); }, 20s));
  const std::string& trace = program.gpu.trace();
  CHECK(trace.find("counters.busy") != std::string::npos);
  CHECK(trace.find("counters.closing") == std::string::npos);
}

TEST_CASE("counters stay with a context that opens windows, whoever else wants them") {
  Program program;
  REQUIRE(program.launch());
  auto last = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration pause{};  // between two windows, at most
  for (int i = 0; i < 200; ++i) {
    program.launch(PlayedGpu::other_context());
    CHECK(program.launch());
    const auto now = std::chrono::steady_clock::now();
    pause = std::max(pause, now - std::exchange(last, now));
    std::this_thread::sleep_for(1ms);
  }
  if (pause < 90ms) CHECK(program.gpu.disabled == 0);
  const auto other_has_them = [&] {
    program.launch(PlayedGpu::other_context());
    return program.gpu.enabled > 1;
  };
  CHECK(comes_true(other_has_them, 10s));
  CHECK(program.gpu.disabled >= 1);
}

// CUPTI patches kernels of modules that are there when a window opens.
TEST_CASE("instructions of a kernel that was not patched are no count; its counters are") {
  const bool loads_module = GENERATE(false, true);
  Program program({.measured = true});
  program.gpu.edge.cupti.ProfilerHostEvaluateToGpuValues =
      [](CUpti_Profiler_Host_EvaluateToGpuValues_Params* p) {
        for (size_t i = 0; i < p->numMetrics; ++i) p->pMetricValues[i] = 0;
        return CUPTI_SUCCESS;
      };
  REQUIRE(program.launch(PlayedGpu::the_context(), loads_module));
  const test::ReadTrace trace = test::read_trace(program.gpu.trace());
  std::map<uint32_t, bool> instrumented;  // by group
  std::map<bool, int> samples;            // of instrumented groups
  for (const auto& packet : trace.packets) {
    if (packet.has_metric_group())
      instrumented[packet.metric_group().id()] = packet.metric_group().instrumented();
    if (packet.has_counter_samples()) ++samples[instrumented.at(packet.counter_samples().group())];
  }
  CHECK(samples[false] > 1);
  CHECK(samples[true] == (loads_module ? 0 : 1));
}

TEST_CASE(
    "while a window is tried out launches that must not be instrumented wait, others do not") {
  Program program({.budget = 0.5});
  PlayedGpu& gpu = program.gpu;
  static std::atomic<bool> trying, held;
  static std::thread::id launcher;
  static CUptiResult(CUPTIAPI * start)(CUpti_RangeProfiler_Start_Params*);
  trying = false;
  held = true;
  start = gpu.edge.cupti.RangeProfilerStart;
  gpu.edge.cupti.RangeProfilerStart = [](CUpti_RangeProfiler_Start_Params* p) {
    trying = trying || std::this_thread::get_id() != launcher;
    while (trying && held) std::this_thread::sleep_for(1ms);
    return start(p);
  };
  // One kernel again and again: once it is screened it is to be instrumented.
  std::thread launches([&] {
    launcher = std::this_thread::get_id();
    PlayedGpu::Launch again;
    gpu.prepare(again);
    for (uint32_t i = 0; i < 64; ++i) {
      again.call.correlation = 1'000'000 + i;
      gpu.enter(again.call);
      gpu.run();
      gpu.exit(again.call);
    }
  });
  REQUIRE(comes_true([] { return trying.load(); }, 20s));
  PlayedGpu::Launch plain, tight;
  gpu.prepare(plain);
  gpu.prepare(tight);
  tight.parameters.blockDimX = 1024;
  std::atomic<bool> entered{false};
  const auto began = std::chrono::steady_clock::now();
  std::thread waits([&] {
    gpu.enter(tight.call);
    entered = true;
    gpu.exit(tight.call);
  });
  std::thread([&] {  // does not wait for the end of the trial
    gpu.enter(plain.call);
    gpu.exit(plain.call);
  })
      .join();
  std::this_thread::sleep_for(20ms);
  const bool before = entered;
  // Who waits for the lock does so for 2 s at most.
  if (std::chrono::steady_clock::now() - began < 1500ms) CHECK_FALSE(before);
  held = false;
  waits.join();
  launches.join();
  CHECK(gpu.trace().find("counters.costly") == std::string::npos);
}

// Of mode full, where a launch waits for 20 s: for another thread's launch in a window, or outside
// of it where a window is to be opened. That launch lasts for as long as its kernel runs.
TEST_CASE("a launch that waits for another thread's launch goes on as the recording ends") {
  const bool outside = GENERATE(false, true);
  Program program({.measured = true});
  PlayedGpu& gpu = program.gpu;
  REQUIRE(program.launch());
  if (outside) program.collective();  // no window is opened
  PlayedGpu::Launch lasts, waits;
  gpu.prepare(lasts);
  gpu.prepare(waits);
  std::atomic<bool> entered{false}, went{false}, ended{false};
  std::thread first([&] {
    gpu.enter(lasts.call);
    entered = true;
    while (!ended) std::this_thread::sleep_for(1ms);
    gpu.exit(lasts.call);
  });
  REQUIRE(comes_true([&] { return entered.load(); }, 20s));
  REQUIRE(gpu.window_open == !outside);
  if (outside) program.synchronize();
  std::thread second([&] {
    gpu.enter(waits.call);
    went = true;
    gpu.exit(waits.call);
  });
  std::this_thread::sleep_for(50ms);
  CHECK_FALSE(went);
  const auto began = std::chrono::steady_clock::now();
  gpu.tracer->disable();
  second.join();
  CHECK(std::chrono::steady_clock::now() - began < 10s);
  ended = true;
  first.join();
}

TEST_CASE("which counters a device has is asked once, with its context, before the first window") {
  const bool refused = GENERATE(false, true);
  Program program;
  PlayedGpu& gpu = program.gpu;
  static std::atomic<uint32_t> asked, enabled_before;
  static bool refuses;
  asked = enabled_before = 0;
  refuses = refused;
  gpu.edge.cupti.ProfilerGetCounterAvailability =
      [](CUpti_Profiler_GetCounterAvailability_Params* p) {
        CHECK(p->ctx == PlayedGpu::the_context());
        enabled_before += PlayedGpu::played()->enabled;
        if (p->pCounterAvailabilityImage == nullptr) ++asked;
        return p->counterAvailabilityImageSize = 3,
               refuses ? CUPTI_ERROR_HARDWARE_BUSY : CUPTI_SUCCESS;
      };
  gpu.resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUstream{});
  CHECK(program.launch());
  gpu.resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUstream{}, PlayedGpu::other_context());
  CHECK(program.launch());
  CHECK(asked == 1);
  CHECK(enabled_before == 0);
  // A refusal is not one of counters.
  CHECK(gpu.trace().find("counters.") == std::string::npos);
}

TEST_CASE(
    "while unseen captures may go on no launch waits for the plan, which waits for their end") {
  Program program({.late = true});
  static std::atomic<uint32_t> asked, described;
  asked = described = 0;
  program.gpu.edge.cupti.DeviceGetChipName = [](CUpti_Device_GetChipName_Params* p) {
    return ++described, p->pChipName = "GH100", CUPTI_SUCCESS;
  };
  program.gpu.edge.cupti.ProfilerGetCounterAvailability =
      [](CUpti_Profiler_GetCounterAvailability_Params* p) {
        if (p->pCounterAvailabilityImage == nullptr) ++asked;
        return p->counterAvailabilityImageSize = 3, CUPTI_SUCCESS;
      };
  const uint64_t began = monotonic_ns();
  CHECK_FALSE(program.launch());
  CHECK((asked == 0 || monotonic_ns() - began > 2'000'000'000));
  CHECK(comes_true([&] { return described == 1; }, 20s));  // which a report needs in any case
  CHECK(comes_true([&] { return program.launch(); }, 20s));
  CHECK(asked == 1);
}

TEST_CASE("a context that is destroyed while it is asked for its counters does not wait for long") {
  Program program;
  PlayedGpu& gpu = program.gpu;
  static std::atomic<bool> asking, held;
  asking = false;
  held = true;
  gpu.edge.cupti.ProfilerGetCounterAvailability =
      [](CUpti_Profiler_GetCounterAvailability_Params*) {
        asking = true;
        const auto give_up = std::chrono::steady_clock::now() + 20s;
        while (held && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
        return CUPTI_ERROR_INVALID_CONTEXT;
      };
  gpu.resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUstream{});
  while (!asking) std::this_thread::sleep_for(1ms);
  gpu.destroy_context(PlayedGpu::the_context());  // returns while CUPTI has not
  CHECK(held);
  held = false;
  gpu.resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUstream{});
  CHECK(program.launch());
}

TEST_CASE("where a context is gone before it could be asked the plan is made without its word") {
  Program program;
  PlayedGpu& gpu = program.gpu;
  static std::atomic<bool> held, planned;
  static std::atomic<uint32_t> asked;
  held = true;
  planned = false;
  asked = 0;
  gpu.edge.cupti.ProfilerDeviceSupported = [](CUpti_Profiler_DeviceSupported_Params* p) {
    while (held) std::this_thread::sleep_for(1ms);
    return p->isSupported = CUPTI_PROFILER_CONFIGURATION_SUPPORTED, CUPTI_SUCCESS;
  };
  gpu.edge.cupti.ProfilerGetCounterAvailability =
      [](CUpti_Profiler_GetCounterAvailability_Params*) {
        return ++asked, CUPTI_ERROR_INVALID_CONTEXT;
      };
  gpu.edge.cupti.ProfilerHostInitialize = [](CUpti_Profiler_Host_Initialize_Params* p) {
    planned = true;
    p->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(uintptr_t{1});
    return CUPTI_SUCCESS;
  };
  gpu.resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUstream{});
  gpu.destroy_context(PlayedGpu::the_context());
  held = false;
  CHECK(comes_true([] { return planned.load(); }, 20s));
  CHECK(program.launch());
  CHECK(asked == 0);
}

TEST_CASE("where all was measured nothing is said") {
  Program program;
  for (int i = 0; i < 8; ++i) {
    program.collective();
    program.synchronize();
    CHECK(program.launch());
  }
  CHECK(program.gpu.trace().find("counters.in_flight") == std::string::npos);
}

TEST_CASE("a kernel that stays in a window for 10 s of the program's time is named, once") {
  const bool long_by_its_clock = GENERATE(false, true);
  Program program({.clock_ns = HeldClock::ns});
  program.launch();
  PlayedGpu::Launch launch;
  program.gpu.prepare(launch);
  program.gpu.enter(launch.call);
  REQUIRE(program.gpu.window_open);
  for (int i = 0; i < 3; ++i) {
    if (long_by_its_clock) HeldClock::now += 11'000'000'000;
    CHECK(HeldClock::is_looked_at());
  }
  program.gpu.run();
  program.gpu.exit(launch.call);
  const std::string trace = program.gpu.trace();
  CHECK(occurrences(trace, "counters.long_launch") == (long_by_its_clock ? 1 : 0));
}

TEST_CASE("a window is old by the program's clock") {
  Program program({.clock_ns = HeldClock::ns});
  REQUIRE(program.launch());
  REQUIRE(program.gpu.window_open);
  CHECK(HeldClock::is_looked_at());
  CHECK(program.gpu.window_open);
  HeldClock::now += 300'000'000;
  CHECK(comes_true([&] { return !program.gpu.window_open; }, 20s));
}

TEST_CASE("launches that do not wait any longer for one in a window do not end measuring") {
  Program program;
  PlayedGpu& gpu = program.gpu;
  REQUIRE(program.launch());
  for (int i = 0; i < 3; ++i) {
    PlayedGpu::Launch stays;
    gpu.prepare(stays);
    gpu.enter(stays.call);
    REQUIRE(gpu.window_open);
    std::thread([&] { program.launch(); }).join();  // after 2 s
    gpu.run();
    gpu.exit(stays.call);
    gpu.end_window();
  }
  CHECK(gpu.measures());
  const std::string& trace = gpu.trace();
  CHECK(trace.find("counters.mismatch") == std::string::npos);
  CHECK(trace.find("counters.spoiled") != std::string::npos);
}
