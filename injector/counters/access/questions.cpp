#include <injector/counters/access/open_window.h>
#include <injector/counters/access/questions.h>
#include <injector/counters/access/with_context.h>
#include <injector/counters/profiler/range_profiler.h>
#include <injector/process/process.h>
#include <injector/process/this_thread.h>
#include <injector/vendor/relaxed_capture.h>

#include <algorithm>
#include <thread>

namespace flopinj {
namespace {

using namespace std::chrono_literals;

// Of Asked::of.
constexpr uint32_t kWaiting = 1, kMemory = 2, kClose = 4, kCapturing = 8;
// How long a launch waits for an answer that it may do without, and a call that waited for the GPU,
// which has a tenth of its own time.
constexpr uint64_t kMostWaitNs = 1'000'000, kMostWaitInCallNs = 5'000'000;
constexpr uint64_t kMostWaitAtAnyCostNs = 1'000'000'000;
constexpr auto kMostWaitForCapture = 20ms;  // once in a recording
constexpr auto kCloseAgainAfter = 1ms;

}  // namespace

Questions::Questions(Edge& edge, Planner& planner, Contexts& contexts, const Captures& captures)
    : edge_(edge), planner_(planner), contexts_(contexts), captures_(captures) {
  planner_.set_answer([this] { answer(); });
}

bool Questions::unfinished(Context& context, std::chrono::nanoseconds most) {
  if (!context.waiting.any()) return false;
  if (captures_.any()) return true;
  context.asked.of.fetch_or(kWaiting);
  planner_.ask(most);
  return context.waiting.any();
}

bool Questions::in_flight(Context& context, uint64_t call_ns, uint64_t& cost_ns) {
  WaitingStreams& waiting = context.waiting;
  if (!waiting.any()) return false;
  const uint64_t began = monotonic_ns();
  const bool due = context.gate.owes();
  const bool at_any_cost = edge_.settings.at_any_cost();
  if (!at_any_cost && !waiting.may_ask(began, call_ns, due)) return true;
  const uint64_t most = at_any_cost    ? kMostWaitAtAnyCostNs
                        : call_ns == 0 ? kMostWaitNs
                                       : std::clamp(call_ns / 10, kMostWaitNs, kMostWaitInCallNs);
  const bool some = unfinished(context, std::chrono::nanoseconds(most));
  const uint64_t took = monotonic_ns() - began;
  waiting.was_asked(began + took, took, call_ns, some);
  cost_ns += took;
  return some;
}

std::optional<size_t> Questions::free_memory(Context& context, std::chrono::nanoseconds most) {
  context.asked.of.fetch_or(kMemory);
  if (!planner_.ask(most)) return std::nullopt;
  return context.asked.free_bytes.load();
}

bool Questions::capturing(Context& context, CUstream stream, bool per_thread) {
  if (stream == CU_STREAM_PER_THREAD || (stream == nullptr && per_thread)) return true;
  context.asked.stream.store(stream);
  context.asked.of.fetch_or(kCapturing);
  return !planner_.ask(kMostWaitForCapture) || context.asked.stream_captures.load();
}

bool Questions::close(Context& context, std::chrono::nanoseconds most) {
  const NoCancellation whole;
  const auto give_up = std::chrono::steady_clock::now() + most;
  context.asked.of.fetch_or(kClose);
  while ((context.asked.of.load() & kClose) != 0 && !context.asked.gone.load()) {
    const auto left = give_up - std::chrono::steady_clock::now();
    if (left <= 0ns) return (context.asked.of.fetch_and(~kClose) & kClose) == 0;
    if (!planner_.ask(left) || (context.asked.of.load() & kClose) != 0)
      std::this_thread::sleep_for(kCloseAgainAfter);
  }
  return true;
}

void Questions::let_questions_end(Context& context) {
  Mutex& asking = context.asked.asking;
  if (asking.try_lock_for(kMostHeldUp)) const MutexLock lock(asking, std::adopt_lock);
}

void Questions::capture_beginning() {
  for (Context* const context : contexts_.all()) let_questions_end(*context);
}

void Questions::stream_destroying(CUstream stream) {
  for (Context* const context : contexts_.all()) {
    if (!context->waiting.holds(stream)) continue;
    unfinished(*context, std::chrono::nanoseconds(kMostWaitNs));
    context->waiting.stream_destroying(stream);
    let_questions_end(*context);
  }
}

void Questions::context_destroying(Context& context) {
  context.asked.gone.store(true);
  let_questions_end(context);
}

bool Questions::ask(Context& context) {
  if (!context.waiting.any()) return false;
  if (!context.asked.asking.try_lock_for(kMostHeldUp)) return true;
  const MutexLock lock(context.asked.asking, std::adopt_lock);
  // capture_beginning() comes behind the raised count: it is seen here, or waits for the lock.
  if (context.asked.gone.load() || captures_.any()) return true;
  const RelaxedCapture relaxed(edge_.cuda);
  const WithContext current(edge_.cuda, context.handle);  // default streams are the context's
  return !current || context.waiting.ask(edge_.cuda);
}

size_t Questions::ask_free_memory(Context& context) {
  if (!context.asked.asking.try_lock_for(kMostHeldUp)) return 0;
  const MutexLock lock(context.asked.asking, std::adopt_lock);
  if (context.asked.gone.load() || edge_.cuda.MemGetInfo == nullptr) return 0;
  const WithContext current(edge_.cuda, context.handle);
  size_t free = 0, total = 0;
  return current && edge_.cuda.MemGetInfo(&free, &total) == CUDA_SUCCESS ? free : 0;
}

bool Questions::ask_capturing(Context& context) {
  if (edge_.cuda.StreamIsCapturing == nullptr || !context.asked.asking.try_lock_for(kMostHeldUp))
    return true;
  const MutexLock lock(context.asked.asking, std::adopt_lock);
  const WithContext current(edge_.cuda, context.handle);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return context.asked.gone.load() || !current ||
         edge_.cuda.StreamIsCapturing(context.asked.stream.load(), &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void Questions::answer(Context& context) {
  const uint32_t asked = context.asked.of.fetch_and(kClose);  // which is asked until it is done
  if ((asked & kWaiting) != 0) ask(context);
  if ((asked & kMemory) != 0) context.asked.free_bytes.store(ask_free_memory(context));
  if ((asked & kCapturing) != 0) context.asked.stream_captures.store(ask_capturing(context));
  if ((asked & kClose) != 0 && close_(context)) context.asked.of.fetch_and(~kClose);
}

void Questions::answer() noexcept {
  try {
    for (Context* const context : contexts_.all()) answer(*context);
  } catch (const std::exception&) {  // no memory: who waits goes on without an answer
  }
}

}  // namespace flopinj
