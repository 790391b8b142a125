#include <injector/cupti_check.h>
#include <injector/graph_calls.h>
#include <injector/launches.h>
#include <injector/planner.h>
#include <injector/process.h>
#include <injector/session.h>
#include <injector/thread_cache.h>
#include <injector/tracer.h>

#include <array>

namespace flopinj {
namespace {

// Callbacks; the rest cost no clock reading. Odd, for ENTER and EXIT take turns.
constexpr uint64_t kTimedEvery = 63;

constexpr std::array kResources{
    CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
    CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_MODULE_LOADED,
    CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
    CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_GRAPH_CLONED,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
    CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
};

}  // namespace

struct Tracer::State {
  explicit State(Edge& e) : edge(e) {}

  Edge& edge;
  CUpti_SubscriberHandle subscriber = nullptr;
  Contexts contexts{edge};
  Modules modules{edge};
  Functions functions{edge, modules};
  Streams streams{edge};
  Captures captures;
  Graphs graphs{edge, functions, captures};
  Planner planner{edge};
  Windows windows{edge, planner, contexts, captures};
  Launches launches{edge, contexts, functions, streams, captures, graphs, windows};

  void api(CUpti_CallbackId, const CUpti_CallbackData&);
  void resource(CUpti_CallbackIdResource, const CUpti_ResourceData&);

  static void CUPTIAPI callback(void* self, CUpti_CallbackDomain, CUpti_CallbackId,
                                const void*) noexcept;
};

void CUPTIAPI Tracer::State::callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                      const void* data) noexcept {
  if (recording_edge() == nullptr) return;
  // Our own calls are nobody's business, but for the modules that they cause to be loaded.
  const bool module = domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_MODULE_LOADED;
  if (Guard::inside() && !module) return;
  const Guard guard;
  State& state = *static_cast<State*>(self);
  try {
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
      state.api(id, *static_cast<const CUpti_CallbackData*>(data));
    else if (domain == CUPTI_CB_DOMAIN_RESOURCE)
      state.resource(static_cast<CUpti_CallbackIdResource>(id),
                     *static_cast<const CUpti_ResourceData*>(data));
  } catch (...) {  // memory: what this call would have told is not counted
    state.edge.collector->diagnostic(Severity::kError, "injector.memory",
                                     "out of memory in a callback: launches may be missing");
  }
}

// How long launch calls take outside of windows, of those whose ENTER was timed.
static void note_call(ThreadState& thread, const LaunchInProgress& launch) {
  if (launch.depth != 1 || launch.in_window || launch.call_began_ns == 0) return;
  bump(thread.timed_calls);
  bump(thread.timed_call_ns, monotonic_ns() - launch.call_began_ns);
}

void Tracer::State::api(CUpti_CallbackId id, const CUpti_CallbackData& data) {
  ThreadState* const thread = this_thread();
  ThreadCache* const cache = thread_cache();
  const LaunchFunction* const launch = find_launch_function(id);
  const bool entering = data.callbackSite == CUPTI_API_ENTER;
  if (thread == nullptr || cache == nullptr) {
    if (launch != nullptr && !entering && data.functionReturnValue != nullptr &&
        *static_cast<const CUresult*>(data.functionReturnValue) == CUDA_SUCCESS)
      edge.collector->count_dropped("too many threads", DeviceId{}, 1);
    return;
  }

  const uint64_t number = thread->callbacks.load(std::memory_order_relaxed);
  bump(thread->callbacks);
  if (number % kTimedEvery == 0) cache->timing_due = true;
  const uint64_t began = cache->timing_due ? monotonic_ns() : 0;
  cache->slow_callback = false;
  if (launch != nullptr) {
    if (entering) {
      launches.enter(*thread, *cache, *launch, data);
    } else {
      note_call(*thread, cache->launch);
      launches.exit(*thread, *cache, *launch, data);
    }
  } else if (const GraphFunction* const graph = find_graph_function(id); graph != nullptr) {
    cache->slow_callback = true;  // not what launches cost
    if (entering) {
      graphs.call_enter(*cache, *graph);
      if (graph->action == GraphAction::kBeginCapture) windows.capture_beginning();
    } else {
      graphs.call_exit(*thread, *cache, *graph, data);
    }
  } else if (const ModuleFunction* const call = find_module_function(id); call != nullptr) {
    cache->slow_callback = true;
    if (entering)
      Modules::call_enter(*cache);
    else
      functions.module_call_exit(*cache, *call, data);
  }
  if (began != 0 && !cache->slow_callback) {
    const uint64_t ended = monotonic_ns();
    bump(thread->timed_callbacks);
    bump(thread->timed_callback_ns, ended - began);
    cache->timing_due = false;
    if (launch != nullptr && entering && cache->launch.depth == 1)
      cache->launch.call_began_ns = ended;
  }
}

void Tracer::State::resource(CUpti_CallbackIdResource id, const CUpti_ResourceData& data) {
  switch (id) {
    case CUPTI_CBID_RESOURCE_CONTEXT_CREATED:
      if (uint32_t ordinal = 0; edge.cupti.GetDeviceId(data.context, &ordinal) == CUPTI_SUCCESS)
        planner.device_seen(ordinal);
      return;
    case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
      functions.module_unloading();
      streams.stream_destroying();
      captures.context_destroying(data.context);
      if (Context* const context = contexts.forget(data.context); context != nullptr) {
        if (windows.context_destroying(*context)) contexts.recycle(context);
      }
      return;
    case CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING:
      captures.stream_destroying(data.resourceHandle.stream);
      return streams.stream_destroying();
    case CUPTI_CBID_RESOURCE_MODULE_LOADED:
      if (data.resourceDescriptor != nullptr)
        modules.loaded(thread_cache(),
                       *static_cast<const CUpti_ModuleResourceData*>(data.resourceDescriptor));
      return;
    case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
      if (data.resourceDescriptor != nullptr)
        modules.unloading(*static_cast<const CUpti_ModuleResourceData*>(data.resourceDescriptor));
      return functions.module_unloading();
    default:
      break;
  }
  ThreadCache* const cache = thread_cache();
  if (cache != nullptr && data.resourceDescriptor != nullptr)
    graphs.resource(*cache, id, *static_cast<const CUpti_GraphData*>(data.resourceDescriptor));
}

Tracer::Tracer(Edge& edge) : state_(std::make_unique<State>(edge)) {}
Tracer::~Tracer() = default;

bool Tracer::subscribe(std::string& error) {
  Problem problem;
  if (check(state_->edge.cupti,
            state_->edge.cupti.Subscribe(&state_->subscriber, State::callback, state_.get()),
            "cuptiSubscribe", problem))
    return true;
  error = problem.line;
  return false;
}

bool Tracer::enable(std::string& error) {
  const CuptiApi& cupti = state_->edge.cupti;
  const auto on = [&](CUpti_CallbackDomain domain, uint32_t id) {
    return cupti.EnableCallback(1, state_->subscriber, domain, id);
  };
  // An older CUPTI does not know every function: what it does not know it cannot miss.
  for (const LaunchFunction& function : launch_functions()) {
    const CUptiResult result = on(CUPTI_CB_DOMAIN_DRIVER_API, function.cbid);
    Problem problem;
    if (function.cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel &&
        !check(cupti, result, "cuptiEnableCallback", problem)) {
      error = problem.line;
      return false;
    }
  }
  for (const GraphFunction& function : graph_functions())
    on(CUPTI_CB_DOMAIN_DRIVER_API, function.cbid);
  for (const ModuleFunction& function : module_functions())
    on(CUPTI_CB_DOMAIN_DRIVER_API, function.cbid);
  for (const auto id : kResources) on(CUPTI_CB_DOMAIN_RESOURCE, id);
  return true;
}

void Tracer::disable() {
  if (state_->subscriber == nullptr) return;
  const Guard guard;
  const CuptiApi& cupti = state_->edge.cupti;
  state_->windows.finish();  // first: the EXIT of a launch that holds a window must still reach us
  state_->planner.stop();
  cupti.EnableDomain(0, state_->subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  cupti.EnableDomain(0, state_->subscriber, CUPTI_CB_DOMAIN_RESOURCE);
  cupti.Unsubscribe(state_->subscriber);
  state_->subscriber = nullptr;
}

}  // namespace flopinj
