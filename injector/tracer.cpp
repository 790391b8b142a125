#include <injector/counters/profiler/planner.h>
#include <injector/launches.h>
#include <injector/process/capture_range.h>
#include <injector/process/log.h>
#include <injector/process/presence.h>
#include <injector/process/process.h>
#include <injector/process/this_thread.h>
#include <injector/process/thread_context.h>
#include <injector/tracer.h>
#include <injector/vendor/cupti_check.h>
#include <injector/vendor/driver_calls.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <variant>

namespace flopinj {
namespace {

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
  // Whose callbacks are taken. A callback may come to us when its subscription has ended already,
  // and what it then points to is gone.
  static std::atomic<State*> current;

  explicit State(Edge& e) : edge(e) {}

  Edge& edge;
  CUpti_SubscriberHandle subscriber = nullptr;
  bool disabled = false;
  bool planner_ended = true;  // it begins in callbacks
  bool adopted = false;       // the subscription, whose callback may be the caller's
  enum class Finalize : uint8_t { kNo, kWanted, kRunning, kDone };
  std::atomic<Finalize> finalize{Finalize::kNo};
  Contexts contexts{edge};
  Modules modules{edge};
  Functions functions{edge, modules};
  Streams streams{edge};
  Captures captures{edge.late, edge.from_inside};
  Graphs graphs{edge, functions, captures};
  Planner planner{edge};
  Questions questions{edge, planner, contexts, captures};
  Windows windows{edge, planner, contexts, captures, questions};
  Launches launches{edge, contexts, functions, streams, captures, questions, graphs, windows};

  void finalize_here(CUpti_CallbackDomain, const void* data);
  void api(const RecursionGuard&, CUpti_CallbackId, const CUpti_CallbackData&);
  void wait_ended(Context&, const CallFrame&, const WaitFunction&, const CUpti_CallbackData&);
  void resource(const RecursionGuard&, CUpti_CallbackIdResource, const CUpti_ResourceData&);
  void failed(const CUpti_StateData&);

  static void CUPTIAPI callback(void* self, CUpti_CallbackDomain, CUpti_CallbackId,
                                const void*) noexcept;
};

constinit std::atomic<Tracer::State*> Tracer::State::current{nullptr};

void CUPTIAPI Tracer::State::callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                      const void* data) noexcept {
  // Of our own calls only these count: modules that they cause to be loaded, and CUPTI's own end.
  const bool module = domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_MODULE_LOADED;
  const bool fatal = domain == CUPTI_CB_DOMAIN_STATE && id == CUPTI_CBID_STATE_FATAL_ERROR;
  if (RecursionGuard::inside() && !module && !fatal) return;
  const RecursionGuard guard;
  const Visit visit(guard);
  if (!visit.allowed()) return;
  // Of an adopted subscription `self` is null.
  State* const now = current.load(std::memory_order_acquire);
  const bool is_now = now != nullptr && (self == nullptr || self == now);
  if (recording_edge() == nullptr) {
    if (is_now) now->finalize_here(domain, data);
    if (begins_range(domain, id, data)) capture_range_begun();
    return;
  }
  if (!is_now) return;
  State& state = *now;
  try {
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
      state.api(guard, id, *static_cast<const CUpti_CallbackData*>(data));
    else if (domain == CUPTI_CB_DOMAIN_RESOURCE)
      state.resource(guard, static_cast<CUpti_CallbackIdResource>(id),
                     *static_cast<const CUpti_ResourceData*>(data));
    else if (fatal)
      state.failed(*static_cast<const CUpti_StateData*>(data));
  } catch (...) {  // memory: what this call would have counted is not
    state.edge.collector->diagnostic(Severity::kError, "injector.memory",
                                     "out of memory in a callback: launches may be missing");
  }
}

void Tracer::State::finalize_here(CUpti_CallbackDomain domain, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API ||
      static_cast<const CUpti_CallbackData*>(data)->callbackSite != CUPTI_API_EXIT)
    return;
  Finalize wanted = Finalize::kWanted;
  if (!finalize.compare_exchange_strong(wanted, Finalize::kRunning)) return;
  edge.cupti.Finalize();
  finalize.store(Finalize::kDone);
}

CallKind kind_of(const DriverCall& call) { return static_cast<CallKind>(call.function.index()); }

// At EXIT, whatever happens in between.
struct EndOfCall {
  CallFrames& calls;
  const CallFrame* frame;
  ~EndOfCall() {
    if (frame != nullptr) calls.end(*frame);
  }
};

// How long launch calls take outside of windows, of those whose ENTER was timed.
static void note_call(const CudaApi& cuda, const ThreadContext& thread) {
  const LaunchInProgress& launch = thread.launch;
  if (thread.calls.in_window() || launch.timed_call_began_ns == 0) return;
  bump(thread.state->timed_calls);
  bump(thread.state->timed_call_ns, cuda.clock_ns() - launch.timed_call_began_ns);
}

void Tracer::State::api(const RecursionGuard& guard, CUpti_CallbackId id,
                        const CUpti_CallbackData& data) {
  const DriverCall* const call = find_driver_call(id);
  if (call == nullptr) {
    if (edge.in_capture_range && ends_range(id, data)) launches.end();
    return;
  }
  ThreadContext* const context = thread_context(guard);
  const auto* const launch = std::get_if<LaunchFunction>(&call->function);
  const auto* const graph = std::get_if<GraphFunction>(&call->function);
  const bool entering = data.callbackSite == CUPTI_API_ENTER;
  if (context == nullptr || context->state == nullptr) {
    if (launch != nullptr && !entering && succeeded(data))
      edge.collector->count_dropped("too many threads", DeviceId{}, 1);
    return;
  }

  ThreadContext& thread = *context;
  ThreadState& state = *thread.state;
  const uint64_t began = state.callbacks.begins() ? monotonic_ns() : 0;
  thread.slow_callback = launch == nullptr;  // then it is not what launches cost
  CallFrame* const frame = entering ? thread.calls.enter(kind_of(*call), id, data.correlationId)
                                    : thread.calls.find(id, data.correlationId);
  const EndOfCall at_exit{thread.calls, entering ? nullptr : frame};
  if (graph != nullptr && !entering) return graphs.call_exit(thread, frame, *graph, data);
  if (frame == nullptr) return;
  if (launch != nullptr && entering) {
    launches.enter(thread, *frame, *launch, data);
  } else if (launch != nullptr) {
    if (frame->outermost) note_call(edge.cuda, thread);
    launches.exit(thread, *frame, *launch, data);
  } else if (graph != nullptr) {
    graphs.call_enter(thread, *frame, *graph);
    if (graph->action == GraphAction::kBeginCapture)
      windows.capture_beginning(contexts.find(thread, data.context), thread.calls);
  } else if (std::holds_alternative<GreenFunction>(call->function)) {
    streams.green_context_made();
  } else if (const auto* const sync = std::get_if<SyncFunction>(&call->function)) {
    if (Context* const on = contexts.find(thread, data.context); on == nullptr)
      return;
    else if (entering)
      windows.synchronizing(*on, thread);
    else if (succeeded(data))
      windows.synchronized(*on, thread, *sync, data.functionParams);
  } else if (const auto* const wait = std::get_if<WaitFunction>(&call->function)) {
    if (Context* const on = contexts.find(thread, data.context); on == nullptr)
      return;
    else if (entering)
      windows.wait_beginning(*on, thread.calls, *frame);
    else
      wait_ended(*on, *frame, *wait, data);
  } else if (const auto* const end = std::get_if<StreamEndFunction>(&call->function)) {
    if (entering) windows.stream_destroying(end->stream(data.functionParams));
  } else if (const auto* const module = std::get_if<ModuleFunction>(&call->function)) {
    if (entering)
      thread.modules_loaded.clear();
    else
      functions.module_call_exit(thread, *module, data);
  }
  if (began == 0 || thread.slow_callback) return;
  const uint64_t ended = monotonic_ns();
  state.callbacks.took(ended - began);
  if (entering && frame->outermost) thread.launch.timed_call_began_ns = edge.cuda.clock_ns();
}

void Tracer::State::wait_ended(Context& context, const CallFrame& frame, const WaitFunction& call,
                               const CUpti_CallbackData& data) {
  if (!succeeded(data)) return;
  if (captures.any()) captures.seen(frame.made_node);
  if (!frame.made_node)
    windows.wait_made(context, call.stream(data.functionParams), call.per_thread_stream);
}

void Tracer::State::resource(const RecursionGuard& guard, CUpti_CallbackIdResource id,
                             const CUpti_ResourceData& data) {
  switch (id) {
    case CUPTI_CBID_RESOURCE_CONTEXT_CREATED:
      if (uint32_t ordinal = 0; edge.cupti.GetDeviceId(data.context, &ordinal) == CUPTI_SUCCESS) {
        contexts.created(data.context, ordinal);
        planner.device_seen(ordinal);
      }
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
      if (ThreadContext* const thread = thread_context(guard); thread != nullptr)
        if (Context* const context = contexts.find(*thread, data.context); context != nullptr)
          windows.module_loaded(*context);
      if (data.resourceDescriptor != nullptr)
        modules.loaded(thread_context(guard),
                       *static_cast<const CUpti_ModuleResourceData*>(data.resourceDescriptor));
      return;
    case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
      if (data.resourceDescriptor != nullptr)
        modules.unloading(*static_cast<const CUpti_ModuleResourceData*>(data.resourceDescriptor));
      return functions.module_unloading();
    default:
      break;
  }
  ThreadContext* const thread = thread_context(guard);
  if (thread != nullptr && data.resourceDescriptor != nullptr)
    graphs.resource(*thread, id, *static_cast<const CUpti_GraphData*>(data.resourceDescriptor));
}

void Tracer::State::failed(const CUpti_StateData& data) {
  if (edge.cupti_failed.exchange(true)) return;
  const char* const message = data.notification.message;
  const std::string line = "CUPTI met a fatal error and has ended itself (" +
                           describe(data.notification.result) +
                           (message != nullptr ? std::string(": ") + message : "") +
                           "): launches from here on are not recorded";
  log::error(line);
  edge.collector->diagnostic(Severity::kError, "cupti.fatal", line);
}

Tracer::Tracer(Edge& edge) : state_(std::make_unique<State>(edge)) {}
Tracer::~Tracer() {
  State* self = state_.get();
  State::current.compare_exchange_strong(self, nullptr);
}

bool Tracer::subscribe(std::string& error) {
  Problem problem;
  if (check(flopinj::subscribe(state_->edge.cupti, &state_->subscriber, State::callback,
                               state_.get()),
            "cuptiSubscribe", problem))
    return true;
  error = problem.line;
  return false;
}

void Tracer::adopt(CUpti_SubscriberHandle subscriber) {
  state_->subscriber = subscriber;
  state_->adopted = true;
}

CUpti_CallbackFunc Tracer::callback() { return State::callback; }

bool Tracer::enable(std::string& error) {
  State::current.store(state_.get(), std::memory_order_release);
  const CuptiApi& cupti = state_->edge.cupti;
  const auto on = [&](CUpti_CallbackDomain domain, uint32_t id) {
    return cupti.EnableCallback(1, state_->subscriber, domain, id);
  };
  on(CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR);
  // What ends something comes first, so that no end is missed of what is seen to begin.
  for (const auto id : kResources) on(CUPTI_CB_DOMAIN_RESOURCE, id);
  on(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture);
  on(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz);
  // An older CUPTI does not know every function: what it does not know it cannot miss.
  for (const DriverCall& call : driver_calls()) {
    if (std::holds_alternative<SyncFunction>(call.function) && !state_->edge.measures) continue;
    const CUptiResult result = on(CUPTI_CB_DOMAIN_DRIVER_API, call.cbid);
    Problem problem;
    if (call.cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel &&
        !check(result, "cuptiEnableCallback", problem)) {
      error = problem.line;
      return false;
    }
  }
  state_->adopted = false;
  return true;
}

void Tracer::disable() noexcept {
  if (state_->subscriber == nullptr || std::exchange(state_->disabled, true)) return;
  const RecursionGuard guard;
  const CuptiApi& cupti = state_->edge.cupti;
  try {
    // First: the EXIT of a launch that holds a window must still reach us.
    state_->windows.finish();
  } catch (const std::exception&) {  // no memory: what it had measured is not known
  }
  state_->planner_ended = state_->planner.stop();
  if (state_->edge.cupti_failed) return;
  state_->edge.exits_missed.store(true, std::memory_order_release);
  cupti.EnableDomain(0, state_->subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  cupti.EnableDomain(0, state_->subscriber, CUPTI_CB_DOMAIN_RESOURCE);
}

void Tracer::end() noexcept {
  if (state_->subscriber == nullptr) return;
  disable();
  const RecursionGuard guard;
  if (state_->edge.cupti_failed) {
    state_->subscriber = nullptr;
    return;
  }
  bool kept = false;
  try {
    if (state_->adopted) give_back_subscription({state_->edge.cupti, state_->subscriber});
    kept = state_->adopted;
  } catch (const std::exception&) {  // no memory: no range is waited for any more
  }
  if (!kept) state_->edge.cupti.Unsubscribe(state_->subscriber);
  state_->subscriber = nullptr;
}

bool Tracer::end_and_finalize(bool programs_thread) noexcept {
  using Finalize = State::Finalize;
  constexpr auto kPatience = std::chrono::seconds(1), kMostWork = std::chrono::seconds(5);
  constexpr auto kLookEvery = std::chrono::milliseconds(1);
  const CuptiApi& cupti = state_->edge.cupti;
  if (state_->subscriber == nullptr || state_->adopted || !cupti.ours_only || cupti.shared() ||
      cupti.Finalize == nullptr || state_->edge.cupti_failed) {
    const bool own = cupti.shared() && !state_->adopted;  // buffers, of our subscription
    end();
    return own;
  }
  disable();
  const RecursionGuard guard;
  state_->finalize = Finalize::kWanted;
  cupti.EnableDomain(1, state_->subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  const auto wait_while = [&](Finalize state, std::chrono::milliseconds most) {
    const auto give_up = std::chrono::steady_clock::now() + most;
    while (state_->finalize == state && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(kLookEvery);
  };
  if (programs_thread && state_->edge.cuda.DeviceGet != nullptr) {
    const ForTheProgram call;
    CUdevice device = 0;
    state_->edge.cuda.DeviceGet(&device, 0);
  }
  wait_while(Finalize::kWanted, kPatience);
  Finalize wanted = Finalize::kWanted;
  if (state_->finalize.compare_exchange_strong(wanted, Finalize::kNo)) {
    cupti.EnableDomain(0, state_->subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
    end();
    return false;
  }
  wait_while(Finalize::kRunning, kMostWork);
  state_->subscriber = nullptr;  // it ended with CUPTI
  return state_->finalize == Finalize::kDone;
}

void Tracer::end_measuring() noexcept { state_->windows.end_measuring(); }
bool Tracer::is_disturbed() { return capturing() || state_->windows.keeps_counters(); }
bool Tracer::capturing() const { return state_->captures.known(); }
bool Tracer::planner_ended() const { return state_->planner_ended; }

}  // namespace flopinj
