#include <collector/base/mutex.h>
#include <injector/process/edge.h>
#include <injector/process/presence.h>
#include <injector/process/process_state.h>
#include <injector/process/this_thread.h>
#include <injector/process/thread_context.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>

namespace flopinj {

constinit thread_local ThreadSlot this_thread_slot
    __attribute__((tls_model("initial-exec"))) = {nullptr, nullptr, nullptr, 0, false};

namespace {

std::atomic<uint32_t> g_epoch{1};

// The key of the C library, once it was asked for. A forked child has its parent's.
constexpr int64_t kNotAsked = -1, kRefused = -2;
std::atomic<int64_t> g_key{kNotAsked};

bool is_current() noexcept {
  return this_thread_slot.epoch == g_epoch.load(std::memory_order_relaxed);
}

constexpr size_t kMostEnded = 64;

void keep_ended(ThreadContexts& contexts, std::unique_ptr<ThreadContext> context)
    FLOPINJ_REQUIRES(contexts.mutex) {
  context->next_ended = contexts.ended;
  contexts.ended = context.release();
  ++contexts.ended_count;
}
std::unique_ptr<ThreadContext> take_ended(ThreadContexts& contexts)
    FLOPINJ_REQUIRES(contexts.mutex) {
  std::unique_ptr<ThreadContext> context(contexts.ended);
  if (context == nullptr) return nullptr;
  contexts.ended = context->next_ended;
  --contexts.ended_count;
  return context;
}

// While a visit lasts, a recording that ends now waits for it.
void hand_back() noexcept {
  const RecursionGuard guard;
  const Visit visit(guard);
  ThreadSlot& slot = this_thread_slot;
  const ThreadSlot ended = slot;
  slot.state = nullptr;
  slot.context = nullptr;
  // Of another epoch: the parent's, or of a recording that frees them itself.
  if (ended.epoch != g_epoch.load(std::memory_order_seq_cst) || !visit.allowed()) return;
  if (ended.context != nullptr) {
    std::unique_ptr<ThreadContext> context(ended.context);
    context->calls.end_all();  // it ended inside of them
    ThreadContexts& contexts = process_state().threads;
    const MutexLock lock(contexts.mutex);
    std::erase(contexts.all, context.get());
    if (contexts.ended_count < kMostEnded) keep_ended(contexts, std::move(context));
  }
  if (Edge* const edge = session_edge(); edge != nullptr && ended.state != nullptr)
    edge->collector->retire_thread(ended.state);
}

void end_of_thread(void*) {
  hand_back();
  forget_presence();
}

int64_t make_key() noexcept {
  pthread_key_t made{};
  const int64_t mine = pthread_key_create(&made, end_of_thread) == 0 ? int64_t{made} : kRefused;
  int64_t known = kNotAsked;
  if (g_key.compare_exchange_strong(known, mine)) return mine;
  if (mine != kRefused) pthread_key_delete(made);  // another thread was faster
  return known;
}

// The thread has something of the recording from now on.
void hand_back_at_end(Collector& collector) noexcept {
  if (hand_back_at_end_of_thread()) return;
  collector.diagnostic(Severity::kWarning, "process.thread_keys",
                       "the program has taken all pthread keys: what its threads leave behind is "
                       "kept, and launches of threads past the 4096th are dropped");
}

// What a slot of another epoch holds is the parent's, and stays where it is.
void begin_epoch() noexcept {
  if (is_current()) return;
  this_thread_slot.state = nullptr;
  this_thread_slot.context = nullptr;
  this_thread_slot.epoch = g_epoch.load(std::memory_order_relaxed);
}

ThreadState* make_state() noexcept {
  begin_epoch();
  Edge* const edge = session_edge();
  if (edge == nullptr) return nullptr;
  ThreadState* const state =
      edge->collector->add_thread(static_cast<uint32_t>(syscall(SYS_gettid)));
  if (state == nullptr) return nullptr;
  this_thread_slot.state = state;
  hand_back_at_end(*edge->collector);
  return state;
}

// Also where there is one whose state found no room before.
ThreadContext* make_context(const RecursionGuard& guard) noexcept {
  ThreadState* const state = thread_state(guard);
  begin_epoch();
  if (this_thread_slot.context != nullptr) {
    this_thread_slot.context->state = state;
    return this_thread_slot.context;
  }
  Edge* const edge = session_edge();
  if (edge == nullptr) return nullptr;
  try {
    auto context = std::make_unique<ThreadContext>();
    context->state = state;
    ThreadContexts& contexts = process_state().threads;
    MutexLock lock(contexts.mutex);
    if (const auto before = take_ended(contexts)) context->functions = std::move(before->functions);
    lock.unlock();
    if (!context->functions.make()) return nullptr;
    lock.lock();
    contexts.all.push_back(context.get());
    lock.unlock();
    this_thread_slot.context = context.release();
    hand_back_at_end(*edge->collector);
    return this_thread_slot.context;
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

bool hand_back_at_end_of_thread() noexcept {
  int64_t key = g_key.load(std::memory_order_acquire);
  if (key == kNotAsked) key = make_key();
  // Any value that is not null makes the destructor run.
  return key != kRefused &&
         pthread_setspecific(static_cast<pthread_key_t>(key), &this_thread_slot) == 0;
}

ThreadState* thread_state(const RecursionGuard&) noexcept {
  const ThreadSlot& slot = this_thread_slot;
  return slot.state != nullptr && is_current() ? slot.state : make_state();
}

ThreadContext* thread_context(const RecursionGuard& guard) noexcept {
  const ThreadSlot& slot = this_thread_slot;
  // Of another epoch it may have been freed.
  return slot.context != nullptr && is_current() && slot.context->state != nullptr
             ? slot.context
             : make_context(guard);
}

bool launching() noexcept {
  const ThreadSlot& slot = this_thread_slot;
  // A thread without a presence has never been inside, and to make one takes memory, which a signal
  // handler must not ask for.
  if (slot.presence == nullptr) return false;
  const RecursionGuard guard;
  const Visit visit(guard);  // a recording that ends now frees the context only afterwards
  // The EXIT of a launch in which a recording began to end is not seen.
  const Edge* const edge = recording_edge();
  return edge != nullptr && !edge->exits_missed.load(std::memory_order_acquire) &&
         slot.context != nullptr && is_current() && slot.context->calls.inside(CallKind::kLaunch);
}

bool others_launching(const ThreadContext* self, const Context& context) noexcept {
  ThreadContexts& contexts = process_state().threads;
  const MutexLock lock(contexts.mutex);
  return std::ranges::any_of(contexts.all, [&](const ThreadContext* other) {
    return other != self && other->calls.launching.load(std::memory_order_seq_cst) == &context;
  });
}

void end_epoch() noexcept { g_epoch.fetch_add(1, std::memory_order_seq_cst); }

void drop_contexts(bool nobody_inside) noexcept {
  ThreadContexts& contexts = process_state().threads;
  const MutexLock lock(contexts.mutex);
  if (nobody_inside)
    for (ThreadContext* const context : contexts.all) delete context;
  contexts.all.clear();
  while (auto context = take_ended(contexts)) {  // none of a thread that may be inside
  }
}

void forget_thread() noexcept {
  end_epoch();
  this_thread_slot.presence = nullptr;
}

}  // namespace flopinj
