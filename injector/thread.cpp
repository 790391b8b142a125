// The calling thread's state: one thread-local pointer, set at the thread's first event, handed
// back when it ends.
#include <injector/edge.h>
#include <injector/session.h>
#include <injector/thread.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace flopinj {

// initial-exec: a plain %fs-relative access, no call into the loader. The few bytes fit the reserve
// that glibc keeps for libraries loaded later.
thread_local bool Guard::inside_ __attribute__((tls_model("initial-exec"))) = false;

namespace {

struct Slot {
  ThreadState* state;
  uint32_t epoch;  // of the session it belongs to: a forked child starts a new one
};
thread_local Slot t_slot __attribute__((tls_model("initial-exec"))) = {nullptr, 0};
std::atomic<uint32_t> g_epoch{1};

pthread_key_t end_of_thread_key() noexcept {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, [](void*) {
      Edge* edge = session_edge();
      if (edge != nullptr && t_slot.state != nullptr &&
          t_slot.epoch == g_epoch.load(std::memory_order_relaxed))
        edge->collector->retire_thread(t_slot.state);
      t_slot.state = nullptr;
    });
    return made;
  }();
  return key;
}

ThreadState* make_state() noexcept {
  Edge* edge = session_edge();
  if (edge == nullptr) return nullptr;
  const Guard guard;
  ThreadState* state = edge->collector->add_thread(static_cast<uint32_t>(syscall(SYS_gettid)));
  if (state == nullptr) return nullptr;
  t_slot = {state, g_epoch.load(std::memory_order_relaxed)};
  // Any non-null value makes the destructor run.
  pthread_setspecific(end_of_thread_key(), state);
  return state;
}

}  // namespace

ThreadState* this_thread() noexcept {
  if (t_slot.state != nullptr && t_slot.epoch == g_epoch.load(std::memory_order_relaxed))
    return t_slot.state;
  return make_state();
}

void forget_threads() noexcept { g_epoch.fetch_add(1, std::memory_order_relaxed); }

}  // namespace flopinj
