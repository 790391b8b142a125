// Questions to a real GPU that no document answers. `probes NAME` asks one, in a process of its own, since a hang or a
// crash is an answer too. It asserts nothing; findings.py makes the account.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "range_windows.h"

using probe::Metrics;
using probe::observe;
using probe::RangeWindows;
using probe::say;
using probe::say_count;
using probe::Stopwatch;

namespace {

const Metrics kInstructions = {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                               "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
                               "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"};
const Metrics kHardware = {"gpu__time_duration.sum", "sm__cycles_elapsed.max",
                           "sm__cycles_active.sum"};
const Metrics kBoth = {kInstructions[0], kHardware[0]};  // never one pass: this is replayed

float* scratch = nullptr;

// Executes exactly steps x threads fused multiply-adds, so a launch is recognised by its count.
__global__ void multiply_adds(int steps, float a, float* out) {
  float x = static_cast<float>(threadIdx.x);
  for (int i = 0; i < steps; ++i) x = __fmaf_rn(x, a, a);
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
__global__ void increment(unsigned long long* counter) { ++*counter; }

void launch(int steps, cudaStream_t stream = nullptr) {
  multiply_adds<<<1, 32, 0, stream>>>(steps, 0.5f, scratch);
}
int steps_of(const std::vector<double>& values) { return static_cast<int>(values[0] / 32); }

double microseconds_per_launch(int launches, int steps) {
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const Stopwatch watch;
  for (int i = 0; i < launches; ++i) multiply_adds<<<132, 256>>>(steps, 0.5f, scratch);
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return watch.microseconds() / launches;
}

void cost() {
  constexpr int kSmall = 10, kLarge = 20000;
  microseconds_per_launch(100, kSmall);
  say("launch, small kernel, no CUPTI", microseconds_per_launch(5000, kSmall), "us");
  say("launch, large kernel, no CUPTI", microseconds_per_launch(200, kLarge), "us");
  RangeWindows windows;
  if (!windows.enable()) return;
  say("Enable", windows.cost().enable, "us");
  say("launch, small kernel, enabled, no window", microseconds_per_launch(5000, kSmall), "us");
  const std::pair<const char*, const Metrics*> groups[] = {
      {"instructions", &kInstructions}, {"hardware", &kHardware}, {"replayed", &kBoth}};
  for (const auto& [name, metrics] : groups) {
    const std::string in = std::string(", ") + name;
    if (!windows.plan(*metrics)) continue;
    say_count("passes" + in, windows.passes());
    say("HostInitialize" + in, windows.cost().host_initialize, "us");
    say("configuration image" + in, windows.cost().config, "us");
    if (!windows.open(1024)) continue;
    say("counter image for 1024 ranges" + in, windows.cost().counter_image, "us");
    say("SetConfig" + in, windows.cost().set_config, "us");
    say("Start" + in, windows.cost().start, "us");
    say("launch in window, small kernel" + in, microseconds_per_launch(500, kSmall), "us");
    say("launch in window, large kernel" + in, microseconds_per_launch(50, kLarge), "us");
    const size_t ranges = windows.close();
    say("Stop after 550 launches" + in, windows.cost().stop, "us");
    say("Decode of 550 launches" + in, windows.cost().decode, "us");
    const Stopwatch watch;
    for (size_t i = 0; i < ranges; ++i) windows.values(i);
    if (ranges > 0)
      say("Evaluate, per range" + in, watch.microseconds() / static_cast<double>(ranges), "us");
    say("launch, small kernel, after the window" + in, microseconds_per_launch(2000, kSmall), "us");
  }
  windows.disable();
  say("launch, small kernel, disabled again", microseconds_per_launch(5000, kSmall), "us");
}

void memory() {
  auto* counter = static_cast<unsigned long long*>(nullptr);
  observe(cudaMalloc(&counter, sizeof *counter), "cudaMalloc");
  RangeWindows windows;
  if (!windows.enable()) return;
  for (const size_t gibibytes : {0, 2, 8}) {
    void* ballast = nullptr;
    if (gibibytes != 0) {
      observe(cudaMalloc(&ballast, gibibytes << 30), "cudaMalloc");
      observe(cudaMemset(ballast, 1, gibibytes << 30), "cudaMemset");
    }
    for (const Metrics* metrics : {&kInstructions, &kHardware, &kBoth}) {
      observe(cudaMemset(counter, 0, sizeof *counter), "cudaMemset");
      if (!windows.plan(*metrics) || !windows.open(16)) continue;
      const Stopwatch watch;
      for (int i = 0; i < 8; ++i) increment<<<1, 1>>>(counter);
      observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      const double each = watch.microseconds() / 8;
      windows.close();
      unsigned long long increments = 0;
      observe(cudaMemcpy(&increments, counter, sizeof increments, cudaMemcpyDeviceToHost),
              "cudaMemcpy");
      const std::string what = std::to_string(windows.passes()) + " pass(es) of " +
                               metrics->front() + ", " + std::to_string(gibibytes) +
                               " GiB allocated";
      say("launch with " + what, each, "us");
      say_count("increments by 8 launches with " + what, increments);
    }
    if (ballast != nullptr) observe(cudaFree(ballast), "cudaFree");
  }
  windows.disable();
}

// How many ranges stand where the launch table has them.
void say_order(const std::string& what, RangeWindows& windows, const std::vector<int>& launched) {
  const size_t ranges = windows.close();
  size_t in_place = 0;
  for (size_t i = 0; i < ranges && i < launched.size(); ++i)
    if (steps_of(windows.values(i)) == launched[i]) ++in_place;
  say_count(what + ": launches", launched.size());
  say_count(what + ": ranges", ranges);
  say_count(what + ": ranges in the order of the launch calls", in_place);
}

void from_threads(const std::string& what, RangeWindows& windows, bool locked) {
  if (!windows.open(512)) return;
  std::vector<int> launched;
  std::mutex table, launching;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      cudaStream_t stream = nullptr;
      observe(cudaSetDevice(0), "cudaSetDevice");
      observe(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
      for (int i = 1; i <= 64; ++i) {
        std::unique_lock lock(launching, std::defer_lock);
        if (locked) lock.lock();
        {
          const std::lock_guard write(table);
          launched.push_back(t * 100 + i);
        }
        launch(t * 100 + i, stream);
      }
    });
  for (auto& thread : threads) thread.join();
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  say_order(what, windows, launched);
}

void order() {
  RangeWindows windows;
  if (!windows.enable() || !windows.plan(kInstructions) || !windows.open(512)) return;
  cudaStream_t streams[4];
  for (auto& stream : streams)
    observe(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  std::vector<int> launched;
  for (int i = 0; i < 128; ++i) {
    launched.push_back(200 - i);
    launch(launched.back(), streams[i % 4]);
  }
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  say_order("one thread, four streams", windows, launched);
  from_threads("four threads under one lock", windows, true);
  if (windows.open(4)) {
    for (int i = 1; i <= 10; ++i) launch(i);
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    say_count("10 launches in a window for 4: ranges", windows.close());
    say_count("10 launches in a window for 4: dropped", windows.dropped());
  }
  windows.disable();
}

// Apart from order(), since it may hang.
void unlocked() {
  RangeWindows windows;
  if (!windows.enable() || !windows.plan(kInstructions)) return;
  from_threads("four threads, no lock", windows, false);
  windows.disable();
}

void thread() {
  RangeWindows windows;
  if (!windows.enable() || !windows.plan(kInstructions) || !windows.open(16)) return;
  std::thread([] {
    observe(cudaSetDevice(0), "cudaSetDevice");
    launch(11);
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }).join();
  launch(12);
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  say_order("enabled here, one launch on another thread and one here", windows, {11, 12});
  windows.disable();
}

void graph() {
  cudaStream_t stream = nullptr;
  observe(cudaStreamCreate(&stream), "cudaStreamCreate");
  observe(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  for (const int steps : {10, 20, 30}) launch(steps, stream);
  cudaGraph_t captured = nullptr;
  cudaGraphExec_t before = nullptr, after = nullptr;
  observe(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture");
  observe(cudaGraphInstantiate(&before, captured, 0), "cudaGraphInstantiate");
  RangeWindows windows;
  if (!windows.enable()) return;
  observe(cudaGraphInstantiate(&after, captured, 0), "cudaGraphInstantiate");
  const std::pair<const char*, cudaGraphExec_t> graphs[] = {{"graph made before Enable", before},
                                                            {"graph made after Enable", after}};
  for (const auto& [name, executable] : graphs)
    for (const Metrics* metrics : {&kInstructions, &kHardware, &kBoth}) {
      if (!windows.plan(*metrics) || !windows.open(16)) continue;
      launch(7, stream);
      observe(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
      launch(8, stream);
      observe(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      const size_t ranges = windows.close();
      const std::string what = std::string(name) + ", a kernel before and after, " +
                               std::to_string(windows.passes()) + " pass(es) of " +
                               metrics->front();
      say_count(what + ": ranges", ranges);
      std::string seen;
      for (size_t i = 0; i < ranges; ++i)
        seen += (i == 0 ? "" : " ") + std::to_string(static_cast<long long>(windows.values(i)[0]));
      say(what + ": values", seen.c_str());
    }
  windows.disable();
}

std::atomic<int> records{0};
void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most) {
  *size = size_t{1} << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
}
void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ++records;
  std::free(buffer);
}
void say_records(const char* what, int launches) {
  const double each = microseconds_per_launch(launches, 10);
  observe(cuptiActivityFlushAll(1), "cuptiActivityFlushAll");
  say(std::string(what) + ": launch", each, "us");
  say_count(std::string(what) + ": kernel records of " + std::to_string(launches),
            records.exchange(0));
}

void activity() {
  observe(cuptiActivityRegisterCallbacks(give_buffer, take_buffer),
          "cuptiActivityRegisterCallbacks");
  observe(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
  say_records("activity alone", 1000);
  RangeWindows windows;
  if (!windows.enable()) return;
  for (const Metrics* metrics : {&kInstructions, &kHardware}) {
    if (!windows.plan(*metrics) || !windows.open(256)) continue;
    say_records((std::string("activity in a window of ") + metrics->front()).c_str(), 200);
    say_count(std::string("ranges of 200 beside activity, ") + metrics->front(), windows.close());
  }
  say_records("activity after the windows", 1000);
  windows.disable();
}

void user_range() {
  RangeWindows windows;
  if (!windows.enable() || !windows.plan(kHardware)) return;
  if (windows.open(64)) {
    say("launch in an automatic range", microseconds_per_launch(50, 10), "us");
    windows.close();
  }
  if (!windows.open(64, CUPTI_UserRange, CUPTI_UserReplay)) return;
  CUpti_RangeProfiler_PushRange_Params push{CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE};
  push.pRangeProfilerObject = windows.object();
  push.pRangeName = "work";
  observe(cuptiRangeProfilerPushRange(&push), "cuptiRangeProfilerPushRange");
  say("launch in one user range", microseconds_per_launch(50, 10), "us");
  CUpti_RangeProfiler_PopRange_Params pop{CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE};
  pop.pRangeProfilerObject = windows.object();
  observe(cuptiRangeProfilerPopRange(&pop), "cuptiRangeProfilerPopRange");
  say_count("user ranges read", windows.close());
  windows.disable();
}

std::atomic<int> calls{0};
void CUPTIAPI on_launch(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || call->callbackSite != CUPTI_API_ENTER || calls++ != 0)
    return;
  if (id != CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) return;
  const auto* arguments = static_cast<const cuLaunchKernel_params*>(call->functionParams);
  std::string layout;
  for (size_t i = 0; i < 16; ++i) {
    size_t offset = 0, size = 0;
    const CUresult result = cuFuncGetParamInfo(arguments->f, i, &offset, &size);
    if (result != CUDA_SUCCESS) {
      layout += "then result " + std::to_string(static_cast<int>(result));
      break;
    }
    layout += std::to_string(offset) + "+" + std::to_string(size) + " ";
  }
  say("cuFuncGetParamInfo inside a launch callback, kernel of (int, float, float*): offset+size",
      layout.c_str());
}

void callback() {
  microseconds_per_launch(
      100, 10);  // the context exists before anyone subscribes, as after a late attach
  say("launch, no subscriber", microseconds_per_launch(5000, 10), "us");
  CUpti_SubscriberHandle first{}, second{};
  observe(cuptiSubscribe(&first, on_launch, nullptr), "cuptiSubscribe");
  const CUptiResult again = cuptiSubscribe(&second, on_launch, nullptr);
  say_count("result of a second cuptiSubscribe in the process", static_cast<uint64_t>(again));
  say("launch, subscribed, no callback enabled", microseconds_per_launch(5000, 10), "us");
  observe(cuptiEnableCallback(1, first, CUPTI_CB_DOMAIN_DRIVER_API,
                              CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel),
          "cuptiEnableCallback");
  say("launch with a callback on cuLaunchKernel", microseconds_per_launch(5000, 10), "us");
  say_count("callbacks for 5000 launches", static_cast<uint64_t>(calls.load()));
  observe(cuptiUnsubscribe(first), "cuptiUnsubscribe");
  say("launch, unsubscribed", microseconds_per_launch(5000, 10), "us");
  observe(cuptiFinalize(), "cuptiFinalize");
  say("launch after cuptiFinalize", microseconds_per_launch(5000, 10), "us");
}

// fp16, 16x8x32 sparse and 16x8x16 dense: 8192 and 4096 operations by shape.
__global__ void matrix_products(bool sparse, int steps, float* out) {
#if __CUDA_ARCH__ >= 800
  float d[4] = {};
  const unsigned zero = 0, pattern = 0x44444444;
  for (int i = 0; i < steps; ++i) {
    if (sparse)
      asm volatile(
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 5)
          "mma.sp::ordered_metadata"
#else
          "mma.sp"
#endif
          ".sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, "
          "{%4,%4,%4,%4}, {%0,%1,%2,%3}, %5, 0x0;"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(zero), "r"(pattern));
    else
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, "
          "{%4,%4}, {%0,%1,%2,%3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(zero));
  }
  out[threadIdx.x] = d[0];
#endif
}

void sparsity() {
  RangeWindows windows;
  if (!windows.enable()) return;
  constexpr int kSteps = 1000;
  for (const char* metric :
       {"sm__ops_path_tensor_src_fp16.sum", "sm__ops_path_tensor_src_fp16_sparsity_on.sum",
        "sm__ops_path_tensor_src_fp16_sparsity_off.sum",
        "sm__ops_path_tensor_src_fp16_dst_fp32.sum",
        "sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_on.sum",
        "sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum",
        "sm__inst_executed_pipe_tensor_op_hmma.sum"}) {
    const Metrics one = {metric};
    if (!windows.plan(one) || !windows.open(4)) continue;  // not every chip has every name
    matrix_products<<<1, 32>>>(false, kSteps, scratch);
    matrix_products<<<1, 32>>>(true, kSteps, scratch);
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (windows.close() != 2) continue;
    say(std::string("per mma.sync m16n8k16 (4096 operations): ") + metric,
        windows.values(0)[0] / kSteps, "");
    say(std::string("per mma.sp m16n8k32 (8192 operations dense, half of one operand stored): ") +
            metric,
        windows.values(1)[0] / kSteps, "");
  }
  windows.disable();
}

void machine() {
  cudaDeviceProp gpu{};
  observe(cudaGetDeviceProperties(&gpu, 0), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  uint32_t cupti = 0;
  observe(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  observe(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  observe(cuptiGetVersion(&cupti), "cuptiGetVersion");
  say("GPU", gpu.name);
  say("compute capability", (std::to_string(gpu.major) + "." + std::to_string(gpu.minor)).c_str());
  say_count("CUDA of the driver", static_cast<uint64_t>(driver));
  say_count("CUDA runtime", static_cast<uint64_t>(runtime));
  say_count("CUPTI", cupti);
}

}  // namespace

int main(int count, char** arguments) {
  const std::map<std::string, void (*)()> probes = {
      {"machine", machine},       {"cost", cost},
      {"memory", memory},         {"order", order},
      {"unlocked", unlocked},     {"thread", thread},
      {"graph", graph},           {"activity", activity},
      {"callback", callback},     {"sparsity", sparsity},
      {"user_range", user_range},
  };
  const auto chosen = count == 2 ? probes.find(arguments[1]) : probes.end();
  if (chosen == probes.end()) {
    for (const auto& [name, probe] : probes) std::printf("%s\n", name.c_str());
    return 2;
  }
  observe(cudaMalloc(&scratch, size_t{1} << 24), "cudaMalloc");
  if (scratch == nullptr) return 1;
  chosen->second();
  return 0;
}
