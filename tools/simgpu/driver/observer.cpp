#include "driver/observer.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "driver/context.h"
#include "driver/execution/clock.h"
#include "driver/runtime.h"
#include "faults/faults.h"

namespace simgpu {
namespace {

[[noreturn]] void end_program(const char* function) {
  std::fprintf(stderr, "simgpu: %s was called inside a callback (strict_callbacks)\n", function);
  std::abort();
}

// A call announces itself in `calls_inside`, then looks at `installed`; set_observer changes
// `installed`, then waits for `calls_inside` to be zero. Sequential consistency makes one of the
// two see the other.
std::atomic<const Observer*> installed{nullptr};
std::atomic<uint64_t> generations{0};
std::atomic<int64_t> calls_inside{0};
std::mutex install_mutex;

thread_local int64_t depth = 0;  // calls of the observer this thread is inside of
std::atomic<uint32_t> next_correlation_id{1};
thread_local uint32_t thread_correlation_id = 0;

}  // namespace

void set_observer(const Observer* observer) {
  // A thread that is inside a call counts as outside while it waits here, or two of them would wait
  // for each other.
  calls_inside.fetch_sub(depth);
  {
    const std::lock_guard lock(install_mutex);
    installed.store(nullptr);
    while (calls_inside.load() != 0) std::this_thread::yield();
    generations.fetch_add(1);
    installed.store(observer);
  }
  calls_inside.fetch_add(depth);
}

ObserverGuard::ObserverGuard(bool nested) {
  if ((depth > 0 && !nested) || installed.load(std::memory_order_relaxed) == nullptr) return;
  calls_inside.fetch_add(1);
  observer_ = installed.load();
  if (observer_ == nullptr) {
    calls_inside.fetch_sub(1);
    return;
  }
  generation_ = generations.load();
  ++depth;
}

ObserverGuard::~ObserverGuard() {
  if (observer_ == nullptr) return;
  --depth;
  calls_inside.fetch_sub(1);
}

ApiScope::ApiScope(uint32_t cbid, const char* name, const void* params, const char* symbol,
                   uint32_t host_ns)
    : outer_correlation_id_(thread_correlation_id) {
  thread_correlation_id = next_correlation_id.fetch_add(1, std::memory_order_relaxed);
  call_.cbid = cbid;
  call_.name = name;
  call_.params = params;
  call_.symbol = symbol;
  call_.correlation_id = thread_correlation_id;
  call_.correlation_data = &correlation_data_;
  if (host_ns != 0 && depth == 0) spend_ns(host_ns);
  if (depth != 0 && Runtime::get().settings().faults.strict_callbacks && !allowed_in_callback(name))
    end_program(name);
  const ObserverGuard guard;
  if (guard.get() == nullptr) return;
  entered_ = true;
  generation_ = guard.generation();
  fill_context();
  if (guard.get()->api_enter) guard.get()->api_enter(guard.get()->self, &call_);
}

void ApiScope::finish(CUresult result) {
  if (!entered_) return;
  const ObserverGuard guard;
  if (guard.get() == nullptr || guard.generation() != generation_) return;
  call_.result = result;
  fill_context();
  if (guard.get()->api_exit) guard.get()->api_exit(guard.get()->self, &call_);
}

ApiScope::~ApiScope() { thread_correlation_id = outer_correlation_id_; }

uint32_t ApiScope::current_correlation_id() { return thread_correlation_id; }
void ApiScope::set_correlation_id(uint32_t id) { thread_correlation_id = id; }

void ApiScope::fill_context() {
  const auto context = current_or_failed_context();
  call_.context = context ? current_handle() : nullptr;
  call_.context_id = context ? context->id : 0;
}

}  // namespace simgpu
