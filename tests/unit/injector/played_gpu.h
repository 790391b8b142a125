// A GPU that a test plays: CUPTI and the driver as structures of functions that agree to
// everything. The test says when a call of the driver is entered and left; the callback it is
// reported to is the library's own, with all that is behind it.
#pragma once
#include <collector/collector.h>
#include <cupti.h>
#include <injector/process/edge.h>
#include <injector/process/this_thread.h>
#include <injector/tracer.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "unit/collector/memory_sink.h"

namespace flopinj::test {

// A stream of it: any handle will do.
inline const CUstream kStream = reinterpret_cast<CUstream>(uintptr_t{0x2000});

class PlayedGpu {
 public:
  // What CUPTI and the driver were asked.
  std::atomic<uint32_t> windows{0};   // opened
  std::atomic<uint32_t> measured{0};  // launches that were made in a window
  std::atomic<bool> window_open{false};
  std::atomic<uint32_t> forbidden{0};  // calls of the driver inside a callback
  std::atomic<uint32_t> time_stamps{0};
  std::atomic<uint32_t> streams_asked{0};         // whether their work has ended
  std::atomic<bool> busy{false};                  // it has not
  std::atomic<uint32_t> enabled{0}, disabled{0};  // the profiler
  std::function<void()> disabling;                // while it is being disabled
  std::function<void()> asked_for_device;         // while CUPTI is asked which device a context has

  // Of launches that are recorded: their times are waited for, and only kernels of this name.
  struct Recorded {
    bool timed = false;
    std::string kernel_name{};
    bool measured = false;                            // each of them: mode full
    uint64_t (*clock_ns)() noexcept = host_clock_ns;  // the program's
    double budget = MeasuringBudget::kUnlimited;
    bool bounded_waits = true;  // of launches, as within a budget
    bool late = false;          // the program was running before
  };
  PlayedGpu() : PlayedGpu(Recorded{}) {}
  explicit PlayedGpu(const Recorded& recorded) : collector(config(recorded), hooks()) {
    edge.settings.kernel_name = recorded.kernel_name;
    if (recorded.measured) edge.settings.mode = Mode::kFull;
    if (!recorded.bounded_waits) edge.settings.budget_percent = 0;
    played() = this;
    edge.collector = &collector;
    edge.settings.given_plan_wait_ms = 20'000;
    edge.measures = true;
    edge.late = recorded.late;
    play_cupti(edge.cupti);
    play_profiler(edge.cupti);
    play_driver(edge.cuda);
    edge.cuda.clock_ns = recorded.clock_ns;
    collector.start(std::make_unique<KeptSink>(trace_), {});
    publish(&edge);
    std::string error;
    tracer.emplace(edge);
    tracer->subscribe(error);
  }
  ~PlayedGpu() {
    if (forbidden != 0) {  // in a test and in a benchmark alike
      std::fprintf(stderr, "%u calls of the driver inside a callback\n", forbidden.load());
      std::abort();
    }
    end();
    drop_contexts(true);
    tracer.reset();
  }
  PlayedGpu(const PlayedGpu&) = delete;
  PlayedGpu& operator=(const PlayedGpu&) = delete;

  // Callbacks come from here on; `true` where they could be enabled.
  bool enable() {
    std::string error;
    return tracer->enable(error);
  }
  void end() {
    if (recording_edge() == nullptr) return;
    tracer->end();
    publish(nullptr);
    end_epoch();
  }

  // All of it: the recording ends.
  const std::string& trace() {
    end();
    collector.close(EndReason::kExit);
    return trace_;  // the sink is gone
  }

  struct Call {
    CUpti_CallbackId id;
    const void* parameters;
    uint32_t correlation;
    const char* symbol = nullptr;
    CUcontext context = the_context();
  };
  template <class Parameters>
  Call call(CUpti_CallbackId id, const Parameters& parameters, const char* symbol = nullptr) {
    return {id, &parameters, ++correlation_, symbol};
  }
  void enter(const Call& call) { api(call, CUPTI_API_ENTER, CUDA_SUCCESS); }
  void exit(const Call& call, CUresult result = CUDA_SUCCESS) { api(call, CUPTI_API_EXIT, result); }

  template <class Data>
  void resource(CUpti_CallbackIdResource id, Data* handle, CUcontext context = the_context()) {
    CUpti_ResourceData data{};
    data.context = context;
    if constexpr (std::is_same_v<Data*, CUstream>) data.resourceHandle.stream = handle;
    call_back(CUPTI_CB_DOMAIN_RESOURCE, id, &data);
  }

  void reports(CUpti_CallbackIdResource id, CUpti_GraphData& of_graph) {
    CUpti_ResourceData data{};
    data.context = the_context();
    data.resourceDescriptor = &of_graph;
    call_back(CUPTI_CB_DOMAIN_RESOURCE, id, &data);
  }

  // The driver loads a module, or unloads it, whose code CUPTI shows.
  void module(CUpti_CallbackIdResource id, uint32_t number, const std::string& image) {
    CUpti_ModuleResourceData shown{};
    shown.moduleId = number;
    shown.pCubin = image.data();
    shown.cubinSize = image.size();
    CUpti_ResourceData data{};
    data.context = the_context();
    data.resourceDescriptor = &shown;
    call_back(CUPTI_CB_DOMAIN_RESOURCE, id, &data);
  }

  void destroy_context(CUcontext context) {
    resource(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, static_cast<CUstream>(nullptr), context);
  }

  // A launch of a kernel that was not launched before, which therefore wants to be measured.
  struct Launch {
    std::string name;
    cuLaunchKernel_params parameters{};
    Call call{};
  };
  void prepare(Launch& launch, CUstream stream = nullptr) {
    const uint32_t number = ++kernels_;
    launch.name = "kernel_" + std::to_string(number);
    CUfunction function = reinterpret_cast<CUfunction>(uintptr_t{number} << 8);
    cuModuleGetFunction_params given{&function, nullptr, launch.name.c_str()};
    const Call get = call(CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction, given);
    enter(get);
    exit(get);
    launch.parameters = {function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr};
    launch.call =
        call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, launch.parameters, launch.name.c_str());
  }
  // Its kernel runs.
  void run(CUcontext context = the_context()) {
    if (!window_open || context != window_context_) return;
    ++measured;
    ++ranges_;
  }
  // A capture that fails.
  void end_window() {
    const cuStreamBeginCapture_v2_params none{nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL};
    const Call capture = call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, none);
    enter(capture);
    exit(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  // Whether a window opens. On a thread of its own, and with no window from before.
  bool measures() {
    const uint32_t before = measured;
    std::thread([this] {
      end_window();
      for (int i = 0; i < 4; ++i) {
        Launch launch;
        prepare(launch);
        enter(launch.call);
        run();
        exit(launch.call);
      }
    }).join();
    return measured > before;
  }

  // Where the planner's thread is slow to answer, launches ask again a tenth of a second later.
  bool measures_soon() {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!measures())
      if (std::chrono::steady_clock::now() > give_up) return false;
    return true;
  }

  static CUcontext the_context() { return reinterpret_cast<CUcontext>(uintptr_t{0x1000}); }
  static CUcontext other_context() { return reinterpret_cast<CUcontext>(uintptr_t{0x1100}); }
  static PlayedGpu*& played() {
    static PlayedGpu* now = nullptr;
    return now;
  }
  // As the session does.
  static void publish(Edge* edge) {
    process_state().session.edge = edge;
    process_state().session.recording = edge;
  }

  Edge edge;

 private:
  std::string trace_;  // once the recording has ended; the collector's end writes it, too

 public:
  Collector collector;
  std::optional<Tracer> tracer;

 private:
  static CollectorConfig config(const Recorded& recorded) {
    CollectorConfig config;
    config.expect_times = recorded.timed;
    config.kernel_name = recorded.kernel_name;
    config.scheduler.every_launch = recorded.measured;
    config.scheduler.budget = recorded.budget;
    return config;
  }

  CollectorHooks hooks() {
    CollectorHooks hooks;
    hooks.now_ns = [this] { return edge.now_ns(); };
    hooks.program_ns = [this] { return edge.cuda.clock_ns(); };
    return hooks;
  }

  void api(const Call& call, CUpti_ApiCallbackSite site, CUresult result) {
    CUpti_CallbackData data{};
    data.callbackSite = site;
    data.functionParams = call.parameters;
    data.functionReturnValue = site == CUPTI_API_EXIT ? &result : nullptr;
    data.symbolName = call.symbol;
    data.context = call.context;
    data.correlationId = call.correlation;
    call_back(CUPTI_CB_DOMAIN_DRIVER_API, call.id, &data);
  }

  static void play_cupti(CuptiApi& cupti) {
    cupti.version = 130000;
    cupti.GetTimestamp = [](uint64_t* now) {
      ++played()->time_stamps;
      return *now = 1, CUPTI_SUCCESS;
    };
    cupti.Subscribe = [](CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* user) {
      *handle = reinterpret_cast<CUpti_SubscriberHandle>(uintptr_t{1});
      played()->callback_ = callback;
      played()->user_ = user;
      return CUPTI_SUCCESS;
    };
    cupti.Unsubscribe = [](CUpti_SubscriberHandle) {
      played()->callback_ = nullptr;
      return CUPTI_SUCCESS;
    };
    cupti.EnableCallback = [](uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                              CUpti_CallbackId) { return CUPTI_SUCCESS; };
    cupti.EnableDomain = [](uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain) {
      return CUPTI_SUCCESS;
    };
    cupti.GetDeviceId = [](CUcontext, uint32_t* ordinal) {
      if (played()->asked_for_device) played()->asked_for_device();
      return *ordinal = 0, CUPTI_SUCCESS;
    };
    cupti.GetContextId = [](CUcontext, uint32_t* id) { return *id = 1, CUPTI_SUCCESS; };
    cupti.GetStreamIdEx = [](CUcontext, CUstream, uint8_t, uint32_t* id) {
      return *id = 7, CUPTI_SUCCESS;
    };
  }

  template <class Parameters>
  static CUptiResult agree(Parameters*) {
    return CUPTI_SUCCESS;
  }
  static void play_profiler(CuptiApi& cupti) {
    cupti.range_profiler = true;
    cupti.DeviceGetChipName = [](CUpti_Device_GetChipName_Params* p) {
      return p->pChipName = "GH100", CUPTI_SUCCESS;
    };
    cupti.ProfilerInitialize = agree<CUpti_Profiler_Initialize_Params>;
    cupti.ProfilerDeviceSupported = [](CUpti_Profiler_DeviceSupported_Params* p) {
      return p->isSupported = CUPTI_PROFILER_CONFIGURATION_SUPPORTED, CUPTI_SUCCESS;
    };
    cupti.ProfilerHostInitialize = [](CUpti_Profiler_Host_Initialize_Params* p) {
      p->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(uintptr_t{1});
      return CUPTI_SUCCESS;
    };
    cupti.ProfilerHostDeinitialize = agree<CUpti_Profiler_Host_Deinitialize_Params>;
    cupti.ProfilerHostConfigAddMetrics = agree<CUpti_Profiler_Host_ConfigAddMetrics_Params>;
    cupti.ProfilerHostGetConfigImageSize = [](CUpti_Profiler_Host_GetConfigImageSize_Params* p) {
      return p->configImageSize = 16, CUPTI_SUCCESS;
    };
    cupti.ProfilerHostGetConfigImage = agree<CUpti_Profiler_Host_GetConfigImage_Params>;
    cupti.ProfilerHostGetNumOfPasses = [](CUpti_Profiler_Host_GetNumOfPasses_Params* p) {
      return p->numOfPasses = 1, CUPTI_SUCCESS;
    };
    cupti.ProfilerHostEvaluateToGpuValues = [](CUpti_Profiler_Host_EvaluateToGpuValues_Params* p) {
      for (size_t i = 0; i < p->numMetrics; ++i) p->pMetricValues[i] = 1;
      return CUPTI_SUCCESS;
    };
    cupti.RangeProfilerEnable = [](CUpti_RangeProfiler_Enable_Params* p) {
      p->pRangeProfilerObject = reinterpret_cast<CUpti_RangeProfiler_Object*>(p->ctx);
      return ++played()->enabled, CUPTI_SUCCESS;
    };
    cupti.RangeProfilerDisable = [](CUpti_RangeProfiler_Disable_Params*) {
      if (played()->disabling) played()->disabling();
      return ++played()->disabled, CUPTI_SUCCESS;
    };
    cupti.RangeProfilerSetConfig = agree<CUpti_RangeProfiler_SetConfig_Params>;
    cupti.RangeProfilerStart = [](CUpti_RangeProfiler_Start_Params* p) {
      ++played()->windows;
      played()->window_context_ = reinterpret_cast<CUcontext>(p->pRangeProfilerObject);
      played()->ranges_ = 0;
      played()->window_open = true;
      return CUPTI_SUCCESS;
    };
    cupti.RangeProfilerStop = [](CUpti_RangeProfiler_Stop_Params*) {
      played()->window_open = false;
      return CUPTI_SUCCESS;
    };
    cupti.RangeProfilerDecodeData = agree<CUpti_RangeProfiler_DecodeData_Params>;
    cupti.RangeProfilerGetCounterDataSize = [](CUpti_RangeProfiler_GetCounterDataSize_Params* p) {
      return p->counterDataSize = 64, CUPTI_SUCCESS;
    };
    cupti.RangeProfilerCounterDataImageInitialize =
        agree<CUpti_RangeProfiler_CounterDataImage_Initialize_Params>;
    cupti.RangeProfilerGetCounterDataInfo = [](CUpti_RangeProfiler_GetCounterDataInfo_Params* p) {
      return p->numTotalRanges = played()->ranges_, CUPTI_SUCCESS;
    };
  }

  void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    const bool outer = std::exchange(in_callback, true);
    callback_(user_, domain, id, data);
    in_callback = outer;
  }
  // NVIDIA's guide does not let the function be called inside a callback.
  static void outside() { played()->forbidden += in_callback ? 1 : 0; }
  static void play_driver(CudaApi& cuda) {
    cuda.CtxPushCurrent = [](CUcontext) { return outside(), CUDA_SUCCESS; };
    cuda.CtxPopCurrent = [](CUcontext*) { return CUDA_SUCCESS; };
    cuda.MemGetInfo = [](size_t* free, size_t* total) {
      outside();
      return *free = *total = size_t{1} << 34, CUDA_SUCCESS;
    };
    cuda.StreamQuery = [](CUstream) {
      outside();
      ++played()->streams_asked;
      return played()->busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    };
    cuda.StreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
      return *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
    };
  }

  struct KeptSink : MemorySink {
    explicit KeptSink(std::string& keep) : kept(keep) {}
    ~KeptSink() override { kept = std::move(bytes); }
    std::string& kept;
  };
  static inline thread_local bool in_callback = false;
  CUpti_CallbackFunc callback_ = nullptr;
  void* user_ = nullptr;
  std::atomic<CUcontext> window_context_{nullptr};
  std::atomic<uint32_t> correlation_{0}, kernels_{0}, ranges_{0};
};

}  // namespace flopinj::test
