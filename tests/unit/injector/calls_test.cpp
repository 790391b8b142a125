// Calls of the driver whose ENTER and EXIT do not both come: whatever is lost, later launches are
// measured, and no capture or wait is left behind.
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <random>
#include <vector>

#include "catch.h"
#include "unit/injector/played_gpu.h"

using namespace flopinj;
using test::kStream;
using test::PlayedGpu;

// What the session has for the rest of the library.
namespace flopinj {
Edge* first_edge() noexcept { return nullptr; }
void end_recording_soon() noexcept {}
void capture_range_begun() noexcept {}
}  // namespace flopinj

namespace {

// This thread's allocation that fails, counted from 1; 0: none does.
thread_local uint64_t t_failing = 0;

void* allocate(size_t size) {
  if (t_failing != 0 && --t_failing == 0) return nullptr;
  return std::malloc(size == 0 ? 1 : size);
}

}  // namespace

void* operator new(size_t size) {
  if (void* const memory = allocate(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace {

struct Scene {
  Scene() { REQUIRE(gpu.enable()); }

  PlayedGpu gpu;
  cuLaunchHostFunc_params wait{kStream, nullptr, nullptr};
  cuStreamBeginCapture_v2_params begin{kStream, CU_STREAM_CAPTURE_MODE_GLOBAL};
  CUgraph graph = nullptr;
  cuStreamEndCapture_params end{kStream, &graph};
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  cuLibraryGetModule_params get_module{&module, library};

  PlayedGpu::Call waits() { return gpu.call(CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc, wait); }
  PlayedGpu::Call begins() {
    return gpu.call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, begin);
  }
  PlayedGpu::Call ends() { return gpu.call(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, end); }
  PlayedGpu::Call modules() {
    return gpu.call(CUPTI_DRIVER_TRACE_CBID_cuLibraryGetModule, get_module);
  }
  void destroy_stream() { gpu.resource(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, kStream); }
};

}  // namespace

TEST_CASE("an EXIT whose ENTER came before the callbacks leaves measuring as it is") {
  Scene scene;
  REQUIRE(scene.gpu.measures());
  scene.gpu.exit(scene.waits());
  CHECK(scene.gpu.measures());
  PlayedGpu::Launch launch;
  scene.gpu.prepare(launch);
  scene.gpu.exit(launch.call);
  scene.gpu.exit(scene.begins());
  scene.gpu.exit(scene.modules());
  CHECK(scene.gpu.measures());
  CHECK_FALSE(scene.gpu.tracer->capturing());
}

TEST_CASE("a capture that ends in a call whose ENTER was not seen has ended") {
  Scene scene;
  const auto begun = scene.begins();
  scene.gpu.enter(begun);
  scene.gpu.exit(begun);
  CHECK(scene.gpu.tracer->capturing());
  CHECK_FALSE(scene.gpu.measures());
  scene.gpu.exit(scene.ends());
  CHECK_FALSE(scene.gpu.tracer->capturing());
  CHECK(scene.gpu.measures());
}

TEST_CASE("a wait whose context is destroyed meanwhile is no wait any more") {
  Scene scene;
  REQUIRE(scene.gpu.measures());
  const auto call = scene.waits();
  scene.gpu.enter(call);
  CHECK_FALSE(scene.gpu.measures());
  scene.gpu.resource(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, static_cast<CUstream>(nullptr));
  scene.gpu.exit(call, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(scene.gpu.measures());  // on the same handle: another context
}

TEST_CASE("a thread that ends inside of a call takes back what the call has raised") {
  Scene scene;
  REQUIRE(scene.gpu.measures());
  std::thread([&] { scene.gpu.enter(scene.waits()); }).join();
  CHECK(scene.gpu.measures());
  std::thread([&] { scene.gpu.enter(scene.begins()); }).join();
  CHECK_FALSE(scene.gpu.tracer->capturing());
  CHECK(scene.gpu.measures());
  std::thread([&] {  // in a window, whose lock it holds
    PlayedGpu::Launch launch;
    scene.gpu.prepare(launch);
    scene.gpu.enter(launch.call);
    REQUIRE(scene.gpu.window_open);
  })
      .join();
  CHECK(scene.gpu.measures());
}

TEST_CASE("a call that an exception leaves ends with the call around it") {
  Scene scene;
  REQUIRE(scene.gpu.measures());
  const auto outer = scene.modules();
  scene.gpu.enter(outer);
  scene.gpu.enter(scene.waits());
  scene.gpu.enter(scene.begins());
  CHECK_FALSE(scene.gpu.measures());
  scene.gpu.exit(outer);
  CHECK_FALSE(scene.gpu.tracer->capturing());
  CHECK(scene.gpu.measures());
}

TEST_CASE("whichever allocation fails in a call, the next launch is measured") {
  const std::vector<std::function<PlayedGpu::Call(Scene&, PlayedGpu::Launch&)>> kinds = {
      [](Scene& scene, PlayedGpu::Launch&) { return scene.waits(); },
      [](Scene& scene, PlayedGpu::Launch&) { return scene.begins(); },
      [](Scene& scene, PlayedGpu::Launch&) { return scene.modules(); },
      [](Scene& scene, PlayedGpu::Launch& launch) {
        scene.gpu.prepare(launch);
        return launch.call;
      }};
  for (size_t kind = 0; kind < kinds.size(); ++kind)
    for (const bool at_exit : {false, true})
      for (uint64_t failing = 1;; ++failing) {
        Scene scene;
        REQUIRE(scene.gpu.measures());  // without its planner's thread nothing is, and it says so
        PlayedGpu::Launch launch;
        const PlayedGpu::Call call = kinds[kind](scene, launch);
        if (!at_exit) t_failing = failing;
        scene.gpu.enter(call);
        scene.gpu.run();
        if (at_exit) t_failing = failing;
        scene.gpu.exit(call);
        const bool failed = std::exchange(t_failing, 0) == 0;
        scene.destroy_stream();
        INFO("kind " << kind << (at_exit ? " EXIT" : " ENTER") << " allocation " << failing);
        CHECK_FALSE(scene.gpu.tracer->capturing());
        CHECK(scene.gpu.measures_soon());
        if (!failed) break;
      }
}

// As CUPTI, which holds a lock of its own while it reports a module on one thread and is asked on
// another.
TEST_CASE("nothing of ours is locked while CUPTI is asked for a context") {
  Scene scene;
  scene.gpu.asked_for_device = [&] {
    std::thread([&] {
      scene.gpu.resource(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, kStream);
      scene.gpu.destroy_context(PlayedGpu::other_context());
    }).join();
  };
  CHECK(scene.gpu.measures());
}

// That context may be about to be destroyed by another thread, which waits for our lock while the
// driver holds its own.
TEST_CASE("a stream that is destroyed has no question asked about streams of other contexts") {
  Scene scene;
  const auto wait = scene.waits();
  scene.gpu.enter(wait);
  scene.gpu.exit(wait);
  const CUstream other = reinterpret_cast<CUstream>(uintptr_t{0x2100});
  const cuStreamDestroy_v2_params destroys{other};
  scene.gpu.enter(scene.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy_v2, destroys));
  CHECK(scene.gpu.streams_asked == 0);
}

// CUPTI ends inside of a call of the program's, and may be called no more; nor may we return.
TEST_CASE("the end of CUPTI is waited for") {
  static std::atomic<bool> began, may_end, finalized;
  began = may_end = finalized = false;
  Scene scene;
  scene.gpu.edge.cupti.ours_only = true;
  scene.gpu.edge.cupti.Finalize = [] {
    began = true;
    while (!may_end) std::this_thread::yield();
    return finalized = true, CUPTI_SUCCESS;
  };
  PlayedGpu::publish(nullptr);  // as a recording that ends
  std::atomic<bool> returned{false}, ended{false};
  std::thread ends([&] {
    ended = scene.gpu.tracer->end_and_finalize(false) && finalized;
    returned = true;
  });
  std::thread program([&] {
    while (!began && !returned) scene.gpu.exit(scene.modules());
  });
  while (!began && !returned) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(began);
  CHECK_FALSE(returned);
  may_end = true;
  ends.join();
  program.join();
  CHECK(ended);
}

TEST_CASE("what a callback says needs no time stamp of CUPTI") {
  Scene scene;
  const cuGraphLaunch_params unknown{reinterpret_cast<CUgraphExec>(uintptr_t{0x3000}), kStream};
  const auto launch = scene.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, unknown);
  scene.gpu.enter(launch);
  scene.gpu.exit(launch);  // "graph.unknown", said under the lock of graphs
  CHECK(scene.gpu.time_stamps == 0);
}

// Calls of all kinds, one inside another, some without ENTER or EXIT. A launch without EXIT is the
// thread's last call: it may hold a window, for which others would wait.
TEST_CASE("after any history of calls launches are measured") {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    Scene scene;
    std::mt19937 random(seed);
    const auto chance = [&](unsigned percent) { return random() % 100 < percent; };
    std::thread([&] {
      bool ended = false;
      int launches = 0;  // one inside another
      std::function<void(int)> step = [&](int depth) {
        const unsigned kind = static_cast<unsigned>(random() % 6);
        PlayedGpu::Launch launch;
        PlayedGpu::Call call{};
        if (kind == 0) call = scene.waits();
        if (kind == 1) call = scene.begins();
        if (kind == 2) call = scene.ends();
        if (kind == 3) call = scene.modules();
        if (kind >= 4) scene.gpu.prepare(launch), call = launch.call;
        const bool enters = !chance(15), launches_kernel = kind >= 4 && enters;
        if (enters) scene.gpu.enter(call);
        launches += launches_kernel ? 1 : 0;
        while (!ended && depth < 20 && chance(45)) step(depth + 1);
        launches -= launches_kernel ? 1 : 0;
        const bool lost = chance(15);
        ended |= lost && kind >= 4;
        if (ended || lost) return;
        const bool fails = chance(20);
        if (launches_kernel && launches == 0 && !fails) scene.gpu.run();
        scene.gpu.exit(call, fails ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
      };
      for (int i = 0; i < 6 && !ended; ++i) step(0);
    }).join();
    scene.destroy_stream();
    INFO("seed " << seed);
    REQUIRE_FALSE(scene.gpu.tracer->capturing());
    REQUIRE(scene.gpu.measures_soon());
  }
}
