#include "process.h"

#include <pthread.h>

#include "driver_link.h"
#include "entry.h"

namespace simgpu::cupti {
namespace {

// As in 13.2, where cuptiGetVersion and cuptiGetResultString ask each other. The frame is used
// after the call, so that no compiler makes a loop of it.
[[gnu::noinline]] int use_up_the_stack(volatile char* above) {
  volatile char frame[256];
  frame[0] = above[0];
  if (frame[0] != 0) return 0;  // never
  return use_up_the_stack(frame) + frame[0];
}

}  // namespace

CUptiResult refused_unstarted() {
  Process& process = Process::get();
  if (process.version() < kCupti132 || process.driver() != nullptr || driver_is_loaded())
    return CUPTI_SUCCESS;
  volatile char top[1] = {0};
  if (process.version() < kCupti133) use_up_the_stack(top);
  return CUPTI_ERROR_UNKNOWN;
}

bool known_size(std::span<const SizeSince> growth, size_t unchanged, size_t size) {
  const Environment& environment = Process::get().environment;
  return takes_size(growth, environment.cupti_version, unchanged, environment.faults.exact_sizes,
                    size);
}

Process::Process()
    : environment(read_environment()),
      callbacks(environment),
      activity(environment),
      ranges(environment),
      observer_(make_observer(*this)) {
  ::pthread_atfork(nullptr, nullptr,
                   [] { get().each_activity([](Activity& of) { of.buffers().forked(); }); });
}

Process& Process::get() {
  static Process* const process = new Process;
  return *process;
}

const Driver* Process::driver() {
  if (const Driver* known = driver_.load(std::memory_order_acquire)) return known;
  const std::scoped_lock lock(mutex_);
  if (const Driver* known = driver_.load(std::memory_order_relaxed)) return known;
  if (environment.faults.cannot_start) return nullptr;
  const Driver* found = link_driver();
  if (found != nullptr && found->driver_version() / 1000 < driver_major(version())) return nullptr;
  driver_.store(found, std::memory_order_release);
  return found;
}

const Driver* Process::attach() {
  const Driver* linked = driver();
  if (linked == nullptr || attached_.load(std::memory_order_acquire)) return linked;
  const std::scoped_lock lock(mutex_);
  if (!attached_.load(std::memory_order_relaxed)) {
    linked->set_observer(&observer_);
    attached_.store(true, std::memory_order_release);
  }
  return linked;
}

Activity* Process::activity_of(CUpti_SubscriberHandle subscriber) {
  if (!callbacks.shared() || !callbacks.subscribed(subscriber)) return nullptr;
  const std::scoped_lock lock(mutex_);
  for (OwnActivity& own : own_) {
    if (own.activity.load(std::memory_order_relaxed) == nullptr) {
      own.subscriber = subscriber;
      own.activity.store(new Activity(environment, Activity::Owner::kClient),
                         std::memory_order_release);
    }
    if (own.subscriber == subscriber) return own.activity.load(std::memory_order_relaxed);
  }
  return nullptr;
}

bool Process::spoils_ranges(CUpti_ActivityKind kind) {
  return environment.faults.no_records_beside && Activity::of_kernels(kind) && ranges.any_enabled();
}

void Process::fail_for_good() {
  if (failed_.exchange(true)) return;
  CUpti_StateData data{};
  data.notification.result = CUPTI_ERROR_UNKNOWN;
  data.notification.message = "a fatal error, as SIMGPU_FAULT asks";
  if (callbacks.wants(CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR))
    callbacks.deliver(CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR, &data);
  detach();
}

void Process::detach() {
  callbacks.reset();
  ranges.reset();
  each_activity([](Activity& of) { of.reset(); });
  if (attached_.exchange(false)) driver()->set_observer(nullptr);  // our lock is free: it may wait
}

}  // namespace simgpu::cupti
