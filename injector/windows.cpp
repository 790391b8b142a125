#include <injector/log.h>
#include <injector/process.h>
#include <injector/range_profiler.h>
#include <injector/thread_cache.h>
#include <injector/windows.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace flopinj {
namespace {

using namespace std::chrono_literals;
constexpr auto kMostWaitAtEnd = 500ms;

// How long a launch waits for another one in a window, and a window for launches that are being
// made. Where every launch is to be measured, one that waits too little is a count that lacks.
constexpr WindowPatience kSampling{2s, 20ms};
constexpr WindowPatience kEveryLaunch{20s, 20s};

// A deadline on the system clock: thread sanitizers do not understand a lock that is waited for by
// any other. Should the clock jump, one wait is shorter or longer.
auto within(std::chrono::system_clock::duration most) {
  return std::chrono::system_clock::now() + most;
}

// The window's CUPTI calls at exit are made on a thread that may have no context.
class WithContext {
 public:
  WithContext(const CudaApi& cuda, CUcontext context) : cuda_(cuda) {
    pushed_ = cuda.CtxPushCurrent != nullptr && cuda.CtxPushCurrent(context) == CUDA_SUCCESS;
  }
  ~WithContext() {
    CUcontext popped = nullptr;
    if (pushed_ && cuda_.CtxPopCurrent != nullptr) cuda_.CtxPopCurrent(&popped);
  }
  WithContext(const WithContext&) = delete;
  WithContext& operator=(const WithContext&) = delete;
  explicit operator bool() const { return pushed_; }

 private:
  const CudaApi& cuda_;
  bool pushed_;
};

}  // namespace

Windows::Windows(Edge& edge, Planner& planner, Contexts& contexts, const Captures& captures)
    : edge_(edge),
      planner_(planner),
      contexts_(contexts),
      captures_(captures),
      scheduler_(edge.collector->scheduler()),
      patience_(edge.settings.mode == Mode::kFull ? kEveryLaunch : kSampling),
      on_(edge.measures && edge.cupti.range_profiler) {
  planner_.set_visit([this] { return close_old(); });
}

void Windows::await_plan(Context& context) {
  if (context.plan_awaited.load(std::memory_order_relaxed)) return;
  planner_.device_seen(context.ordinal);
  if (on_.load(std::memory_order_relaxed) && edge_.settings.plan_wait_ms() > 0)
    planner_.wait(context.ordinal, edge_.settings.plan_wait_ms());
  context.plan_awaited.store(true, std::memory_order_relaxed);
}

bool Windows::wants_window(const Context& context, const Signature* signature,
                           const MeasuredGraph* graph) const {
  const bool wants = signature != nullptr
                         ? signature->wanted_groups.load(std::memory_order_relaxed) != 0
                         : graph != nullptr && graph->wants.load(std::memory_order_relaxed);
  return wants && planner_.plan(context.ordinal) != nullptr &&
         (signature == nullptr || scheduler_.may_want(context.device, *signature)) &&
         !captures_.any();
}

void Windows::enter(Context& context, ThreadCache& thread, const Signature* signature,
                    MeasuredGraph* graph) {
  if (!on_.load(std::memory_order_relaxed)) return;
  // Measuring has stopped: from the last window on, launches are only counted.
  if (scheduler_.stopped() && !context.gate.load(std::memory_order_relaxed)) return;
  // This store and the load of the gate, and in open() the store of the gate and the loads of
  // `launching`, are sequentially consistent: at least one of the two threads sees the other.
  thread.launching.store(&context, std::memory_order_seq_cst);
  if (!wants_window(context, signature, graph) && !context.gate.load(std::memory_order_seq_cst))
    return;
  thread.launching.store(nullptr, std::memory_order_release);
  thread.slow_callback = true;
  enter_slowly(context, thread, signature, graph);
}

void Windows::enter_slowly(Context& context, ThreadCache& thread, const Signature* signature,
                           MeasuredGraph* graph) {
  std::unique_lock lock(context.lock, within(patience_.for_lock));
  if (lock.owns_lock()) {
    // A window of a graph that is still open: the EXIT of its launch never came to us.
    if (context.window != nullptr &&
        (context.window->graph != nullptr || scheduler_.close_before(signature)))
      close(context);
    bool chosen = false;
    if (on_.load(std::memory_order_relaxed)) {
      if (signature != nullptr)
        chosen = decide(context, thread, *signature);
      else if (graph != nullptr)
        open_for(context, thread, *graph);
    }
    if (context.window != nullptr) {
      thread.launch.in_window = true;
      thread.launch.chosen = chosen;
      thread.launch.call_began_ns = monotonic_ns();
      lock.release();  // until exit()
      return;
    }
  } else {
    context.passed_by.fetch_add(1, std::memory_order_relaxed);
  }
  thread.launching.store(&context, std::memory_order_seq_cst);
}

// Closes and opens windows as the scheduler says. Whether the launch is to become a sample.
bool Windows::decide(Context& context, const ThreadCache& thread, const Signature& signature) {
  const auto* const window = context.window != nullptr ? &context.window->measured : nullptr;
  auto decision = scheduler_.decide(context.device, signature, window, monotonic_ns());
  if (decision.close) {
    close(context);
    if (!decision.open)
      decision = scheduler_.decide(context.device, signature, nullptr, monotonic_ns());
  }
  // A window that could not be read may have ended all measuring of this device.
  if (decision.open && scheduler_.may_want(context.device, signature))
    open(context, thread, *decision.open, decision.shared, nullptr);
  return decision.chosen;
}

void Windows::open(Context& context, const ThreadCache& thread, uint32_t group, bool shared,
                   MeasuredGraph* graph) {
  DevicePlan* const plan = planner_.plan(context.ordinal);
  if (plan == nullptr || group >= plan->groups.size()) return;

  const uint64_t began = monotonic_ns();
  ShutGate gate(context);
  // capture_beginning() reads the gate after it has counted itself: one of the two sees the other.
  if (captures_.any()) return;
  const auto give_up = std::chrono::steady_clock::now() + patience_.for_launches;
  while (others_launching(thread, context)) {
    if (std::chrono::steady_clock::now() > give_up) {  // the next launch tries again
      scheduler_.add_cost(monotonic_ns() - began);
      return;
    }
    std::this_thread::yield();
  }

  if (context.profiler == nullptr)
    context.profiler = std::make_unique<RangeProfiler>(edge_.cupti, context.handle);
  size_t most = scheduler_.config().max_ranges;
  auto window = std::make_unique<OpenWindow>();
  window->plan = plan;
  window->graph = graph;
  window->passed_by = context.passed_by.load(std::memory_order_relaxed);
  window->measured.device = context.device;
  window->measured.group = group;
  window->measured.shared = shared;
  if (graph == nullptr)
    window->measured.rows.reserve(most);
  else
    most = std::max(most, graph->kernels.size() + 1);  // one too many is to be seen
  Problem problem;
  if (!context.profiler->open(window->read_by(), most, problem))
    return graph == nullptr ? degrade(context, problem) : refuse_graphs(problem);
  window->measured.opened_ns = monotonic_ns();
  window->measured.cost.overhead_ns = window->measured.opened_ns - began;
  context.window = std::move(window);
  gate.keep();
  planner_.visit_soon();
}

bool Windows::exit(Context& context, ThreadCache& thread, WindowRow row, bool made) {
  if (!thread.launch.in_window) {
    leave(thread);
    return false;
  }
  thread.launch.in_window = false;
  thread.slow_callback = true;
  const std::unique_lock lock(context.lock, std::adopt_lock);
  if (context.window != nullptr && context.window->graph != nullptr) {
    row.call_ns = monotonic_ns() - thread.launch.call_began_ns;
    close_graph(context, made ? &row : nullptr);
    return made;
  }
  // Of a launch that has no signature there is a range and no row: the window will be discarded.
  if (context.window == nullptr || !made || row.signature == nullptr) return false;
  const uint64_t now = monotonic_ns();
  row.chosen = thread.launch.chosen;
  row.call_ns = now - thread.launch.call_began_ns;
  if (scheduler_.row_added(context.window->measured, row, now)) close(context);
  return true;
}

void Windows::leave(ThreadCache& thread) noexcept {
  thread.launching.store(nullptr, std::memory_order_release);
  if (!std::exchange(thread.launch.in_window, false)) return;
  thread.launch.context->lock.unlock();
}

void Windows::close(Context& context) {
  if (context.window->graph != nullptr) return close_graph(context, nullptr);
  const uint64_t began = monotonic_ns();
  const ShutGate gate(context);
  const auto window = std::move(context.window);
  MeasurementWindow& measured = window->measured;
  MetricGroup& group = window->read_by();
  std::vector<double> values;
  Problem problem;
  auto outcome = RangeProfiler::Outcome::kMismatch;
  try {
    outcome = context.profiler->close(group, measured.rows.size(), values, problem);
  } catch (const std::exception&) {
    problem = {"counters.memory", "no memory for a window's counters: it was discarded"};
  }
  measured.cost.open_ns = began - measured.opened_ns;
  measured.cost.overhead_ns += monotonic_ns() - began;

  if (outcome == RangeProfiler::Outcome::kRead) {
    scheduler_.window_succeeded(measured, values);
    const uint32_t number = windows_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (window->plan->together == nullptr)
      return deliver(*window, number, measured.group, values, 0);
    size_t column = 0;
    for (uint32_t g = 0; g < window->plan->groups.size(); ++g) {
      deliver(*window, number, g, values, column);
      column += window->plan->groups[g]->metrics.size();
    }
    return;
  }
  scheduler_.window_failed(measured);
  if (outcome == RangeProfiler::Outcome::kFailed)
    degrade(context, problem);
  else
    edge_.collector->diagnostic(Severity::kWarning, problem.code, problem.line);
}

// The rows that were chosen, as samples of a group whose metrics begin at `column`.
void Windows::deliver(const OpenWindow& window, uint32_t number, uint32_t group,
                      std::span<const double> values, size_t column) {
  const auto& rows = window.measured.rows;
  const size_t width = rows.empty() ? 0 : values.size() / rows.size();
  const size_t metrics = window.plan->groups[group]->metrics.size();
  SampleBatch batch;
  batch.device = window.measured.device;
  batch.group = window.plan->ids[group];
  batch.window = number;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].chosen) continue;
    batch.signatures.push_back(rows[i].signature->id);
    batch.paths.push_back(rows[i].path);
    batch.correlations.push_back(rows[i].correlation);
    const auto row = values.subspan(i * width + column, metrics);
    batch.values.insert(batch.values.end(), row.begin(), row.end());
  }
  if (!batch.signatures.empty()) edge_.collector->samples(std::move(batch));
}

void Windows::degrade(const Context& context, const Problem& problem) {
  context.profiler->disable();
  scheduler_.disable(context.device);
  edge_.collector->diagnostic(Severity::kError, problem.code, problem.line);
  log::warn(problem.line + "; device " + std::to_string(context.ordinal) +
            " goes on without counters, launches and times are recorded");
}

bool Windows::context_destroying(Context& context) {
  const std::unique_lock lock(context.lock, within(kMostWaitAtEnd));
  if (!lock.owns_lock()) return false;
  if (context.window != nullptr) close(context);
  if (context.profiler != nullptr) context.profiler->disable();
  context.profiler.reset();
  return true;
}

// On a thread that may have another context, or none.
void Windows::close_from_outside(Context& context) {
  const WithContext current(edge_.cuda, context.handle);
  if (current) return close(context);
  context.window.reset();  // the driver is already gone, and the counters with it
  context.gate.store(false, std::memory_order_seq_cst);
}

void Windows::capture_beginning() {
  for (Context* const context : contexts_.all()) {
    if (!context->gate.load(std::memory_order_seq_cst)) continue;
    const std::unique_lock lock(context->lock, within(patience_.for_lock));
    if (lock.owns_lock() && context->window != nullptr) close_from_outside(*context);
  }
}

// True while a window is open that is to be looked at again.
bool Windows::close_old() noexcept {
  bool open = false;
  try {
    for (Context* const context : contexts_.all()) {
      if (!context->gate.load(std::memory_order_relaxed)) continue;
      // Taken: by a launch in the window, which closes it itself if it is the last one for long.
      const std::unique_lock lock(context->lock, std::try_to_lock);
      if (lock.owns_lock() && context->window == nullptr) continue;
      const bool due = lock.owns_lock() && monotonic_ns() - context->window->measured.opened_ns >=
                                               scheduler_.config().max_open_ns;
      if (due)
        close_from_outside(*context);
      else
        open = true;
    }
  } catch (const std::exception&) {  // memory; the gate is open again where a window was closed
    return true;
  }
  return open;
}

void Windows::finish() {
  on_.store(false, std::memory_order_relaxed);
  for (Context* const context : contexts_.all()) {
    const std::unique_lock lock(context->lock, within(kMostWaitAtEnd));
    if (!lock.owns_lock() || context->profiler == nullptr) continue;
    if (context->window != nullptr) close_from_outside(*context);
    const WithContext current(edge_.cuda, context->handle);
    if (current) context->profiler->disable();
  }
}

}  // namespace flopinj
