#include <injector/log.h>
#include <injector/process.h>
#include <injector/range_profiler.h>
#include <injector/thread_cache.h>
#include <injector/windows.h>

#include <chrono>
#include <thread>

namespace flopinj {
namespace {

using namespace std::chrono_literals;
constexpr auto kMostWait = 2s;  // for a launch that another thread makes in a window
constexpr auto kMostWaitAtEnd = 500ms;
constexpr auto kMostDrain = 20ms;  // for launches that other threads are in the middle of

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

Windows::Windows(Edge& edge, Planner& planner, Contexts& contexts)
    : edge_(edge),
      planner_(planner),
      contexts_(contexts),
      scheduler_(edge.collector->scheduler()),
      on_(edge.settings.mode == Mode::kMultiplex && edge.cupti.range_profiler) {}

void Windows::await_plan(Context& context) {
  if (context.plan_awaited.load(std::memory_order_relaxed)) return;
  planner_.device_seen(context.ordinal);
  if (on_.load(std::memory_order_relaxed) && edge_.settings.plan_wait_ms > 0)
    planner_.wait(context.ordinal, edge_.settings.plan_wait_ms);
  context.plan_awaited.store(true, std::memory_order_relaxed);
}

void Windows::enter(Context& context, ThreadCache& thread, const Signature* signature) {
  if (!on_.load(std::memory_order_relaxed)) return;
  // This store and the load of the gate, and in open() the store of the gate and the loads of
  // `launching`, are sequentially consistent: at least one of the two threads sees the other.
  thread.launching.store(&context, std::memory_order_seq_cst);
  const bool wants = signature != nullptr &&
                     signature->wanted_groups.load(std::memory_order_relaxed) != 0 &&
                     planner_.plan(context.ordinal) != nullptr &&
                     scheduler_.group_to_open(context.device, *signature).has_value();
  if (!wants && !context.gate.load(std::memory_order_seq_cst)) return;
  thread.launching.store(nullptr, std::memory_order_release);
  thread.slow_callback = true;
  enter_slowly(context, thread, signature);
}

void Windows::enter_slowly(Context& context, ThreadCache& thread, const Signature* signature) {
  std::unique_lock lock(context.lock, within(kMostWait));
  if (lock.owns_lock()) {
    if (context.window != nullptr && scheduler_.close_before(signature)) close(context);
    if (context.window == nullptr && signature != nullptr && on_.load(std::memory_order_relaxed))
      open(context, thread, *signature);
    if (context.window != nullptr) {
      thread.launch.in_window = true;
      lock.release();  // until exit()
      return;
    }
  }
  thread.launching.store(&context, std::memory_order_seq_cst);
}

void Windows::open(Context& context, const ThreadCache& thread, const Signature& signature) {
  DevicePlan* const plan = planner_.plan(context.ordinal);
  if (plan == nullptr) return;
  const auto group = scheduler_.group_to_open(context.device, signature);
  if (!group || *group >= plan->groups.size()) return;

  const uint64_t began = monotonic_ns();
  context.gate.store(true, std::memory_order_seq_cst);
  const auto give_up = std::chrono::steady_clock::now() + kMostDrain;
  while (others_launching(thread, context)) {
    if (std::chrono::steady_clock::now() > give_up) {  // the next launch tries again
      context.gate.store(false, std::memory_order_seq_cst);
      edge_.collector->add_window_cost(monotonic_ns() - began);
      return;
    }
    std::this_thread::yield();
  }

  if (context.profiler == nullptr)
    context.profiler = std::make_unique<RangeProfiler>(edge_.cupti, context.handle);
  Problem problem;
  if (!context.profiler->open(*plan->groups[*group], scheduler_.config().max_ranges, problem)) {
    context.gate.store(false, std::memory_order_seq_cst);
    degrade(context, problem);
    return;
  }
  context.window = std::make_unique<OpenWindow>();
  context.window->plan = plan;
  context.window->group = *group;
  context.window->rows.reserve(scheduler_.config().max_ranges);
  context.window->opened_ns = monotonic_ns();
  context.window->cost_ns = context.window->opened_ns - began;
}

bool Windows::exit(Context& context, ThreadCache& thread, const WindowRow& row, bool made) {
  if (!thread.launch.in_window) {
    thread.launching.store(nullptr, std::memory_order_release);
    return false;
  }
  thread.launch.in_window = false;
  thread.slow_callback = true;
  const std::unique_lock lock(context.lock, std::adopt_lock);
  if (context.window == nullptr) return false;
  OpenWindow& window = *context.window;
  if (made) window.rows.push_back(row);
  if (scheduler_.close_after(context.device, window.group, window.rows, window.opened_ns,
                             monotonic_ns()))
    close(context);
  return made;
}

void Windows::close(Context& context) {
  const uint64_t began = monotonic_ns();
  const auto window = std::move(context.window);
  MetricGroup& group = *window->plan->groups[window->group];
  std::vector<double> values;
  Problem problem;
  const auto outcome = context.profiler->close(group, window->rows.size(), values, problem);
  context.gate.store(false, std::memory_order_seq_cst);

  if (outcome == RangeProfiler::Outcome::kRead) {
    if (!window->rows.empty()) {
      SampleBatch batch;
      batch.group = window->plan->ids[window->group];
      batch.window = windows_.fetch_add(1, std::memory_order_relaxed) + 1;
      for (const WindowRow& row : window->rows) {
        batch.signatures.push_back(row.signature->id);
        batch.paths.push_back(row.path);
      }
      scheduler_.window_succeeded(context.device, window->group, window->rows, values);
      batch.values = std::move(values);
      edge_.collector->samples(std::move(batch));
    }
  } else {
    scheduler_.window_failed(context.device, window->group, window->rows);
    if (outcome == RangeProfiler::Outcome::kFailed)
      degrade(context, problem);
    else
      edge_.collector->diagnostic(Severity::kWarning, problem.code, problem.line);
  }
  edge_.collector->add_window_cost(window->cost_ns + monotonic_ns() - began);
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

void Windows::finish() {
  on_.store(false, std::memory_order_relaxed);
  for (Context* const context : contexts_.all()) {
    const std::unique_lock lock(context->lock, within(kMostWaitAtEnd));
    if (!lock.owns_lock() || context->profiler == nullptr) continue;
    const WithContext current(edge_.cuda, context->handle);
    if (!current) {  // the driver is already gone, and the counters with it
      context->window.reset();
      context->gate.store(false, std::memory_order_seq_cst);
      continue;
    }
    if (context->window != nullptr) close(*context);
    context->profiler->disable();
  }
}

}  // namespace flopinj
