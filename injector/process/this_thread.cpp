#include <collector/identity/mutex.h>
#include <injector/process/edge.h>
#include <injector/process/never_destroyed.h>
#include <injector/process/presence.h>
#include <injector/process/this_thread.h>
#include <injector/process/thread_context.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <vector>

namespace flopinj {

constinit thread_local ThreadSlot this_thread_slot
    __attribute__((tls_model("initial-exec"))) = {nullptr, nullptr, nullptr, 0, false};

namespace {

std::atomic<uint32_t> g_epoch{1};

// Never destroyed: threads may outlive static objects.
struct ThreadContexts {
  Mutex mutex;
  std::vector<ThreadContext*> all FLOPINJ_GUARDED_BY(mutex);
};
constinit NeverDestroyed<ThreadContexts> g_contexts;
ThreadContexts& thread_contexts() { return g_contexts.value; }

bool is_current() noexcept {
  return this_thread_slot.epoch == g_epoch.load(std::memory_order_relaxed);
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
    const std::unique_ptr<ThreadContext> context(ended.context);
    const MutexLock lock(thread_contexts().mutex);
    std::erase(thread_contexts().all, context.get());
  }
  if (Edge* const edge = session_edge(); edge != nullptr && ended.state != nullptr)
    edge->collector->retire_thread(ended.state);
}

void end_of_thread(void*) {
  hand_back();
  forget_presence();
}

struct Key {
  pthread_key_t key{};
  bool made;
  Key() : made(pthread_key_create(&key, end_of_thread) == 0) {}
};

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
    if (!context->functions.make()) return nullptr;
    {
      const MutexLock lock(thread_contexts().mutex);
      thread_contexts().all.push_back(context.get());
    }
    this_thread_slot.context = context.release();
    hand_back_at_end(*edge->collector);
    return this_thread_slot.context;
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

bool hand_back_at_end_of_thread() noexcept {
  static const Key key;
  // Any value that is not null makes the destructor run.
  return key.made && pthread_setspecific(key.key, &this_thread_slot) == 0;
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
  return slot.context != nullptr && is_current() && slot.context->launch_depth > 0;
}

bool others_launching(const ThreadContext& self, const Context& context) noexcept {
  const MutexLock lock(thread_contexts().mutex);
  return std::ranges::any_of(thread_contexts().all, [&](const ThreadContext* other) {
    return other != &self && other->launching.load(std::memory_order_seq_cst) == &context;
  });
}

void end_epoch() noexcept { g_epoch.fetch_add(1, std::memory_order_seq_cst); }

void drop_contexts(bool nobody_inside) noexcept {
  const MutexLock lock(thread_contexts().mutex);
  if (nobody_inside)
    for (ThreadContext* const context : thread_contexts().all) delete context;
  thread_contexts().all.clear();
}

void forget_threads() noexcept {
  end_epoch();
  forget_all_presences();
  // Another thread of the parent may have held the lock, and been in the middle of a change.
  new (&thread_contexts()) ThreadContexts;
}

}  // namespace flopinj
