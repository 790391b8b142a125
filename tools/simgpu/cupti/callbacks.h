// The callback API's state: the subscribers, and which callbacks they want. There is one, unless
// all of them ask for more (13.2 and later).
//
// Delivery happens on the thread of the CUDA call. A launch with its callback off costs one relaxed
// load. CUDA calls made inside a callback are not reported again: CUPTI forbids them (but for
// synchronization), so a tool must not depend on them.
#pragma once
#include <cupti.h>
#include <simgpu/hooks.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "environment.h"

namespace simgpu::cupti {

class Callbacks {
 public:
  explicit Callbacks(const Environment& environment) : environment_(environment) {}

  // old_name receives the present subscriber's name when there is one; may be null.
  CUptiResult subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function,
                        void* user_data, const char* name, char* old_name, size_t old_name_size,
                        bool allow_multiple);
  CUptiResult unsubscribe(CUpti_SubscriberHandle handle);
  CUptiResult enable(bool on, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                     CUpti_CallbackId id);
  CUptiResult enable_domain(bool on, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain);
  void reset();  // cuptiFinalize: no subscriber, nothing enabled
  bool subscribed(CUpti_SubscriberHandle handle) const noexcept;
  bool shared() const noexcept;  // by subscribers that allow others

  bool wants(CUpti_CallbackDomain domain, uint32_t id) const noexcept {
    if (id >= kMaxIds) return false;
    return is_set(mask_, domain, id);
  }
  void deliver(CUpti_CallbackDomain domain, uint32_t id, const void* data) noexcept;
  void api(const ApiCall& call, CUpti_ApiCallbackSite site) noexcept;
  // The API call in whose callback at EXIT this thread is; 0 in none.
  static uint32_t exiting_call() noexcept;
  // Whether this thread is in a callback.
  static bool inside() noexcept;

 private:
  static constexpr uint32_t kMaxIds = 1024;             // the driver domain has 826
  static uint32_t ids_in(CUpti_CallbackDomain domain);  // number of ids, 0 for an unknown domain
  using Mask = std::array<std::array<std::atomic<uint64_t>, kMaxIds / 64>, CUPTI_CB_DOMAIN_SIZE>;

  struct Subscription {
    Subscription(CUpti_CallbackFunc f, void* data, std::string n, bool allow)
        : function(f), user_data(data), name(std::move(n)), allows_others(allow) {}
    CUpti_CallbackFunc function;
    void* user_data;
    std::string name;
    bool allows_others;
    std::atomic<bool> asked{false};  // for a callback
    Mask mask{};
  };
  static constexpr size_t kMostSubscribers = 4;

  static bool is_set(const Mask& mask, CUpti_CallbackDomain domain, uint32_t id) noexcept {
    const uint64_t word = mask[domain][id / 64].load(std::memory_order_relaxed);
    return (word >> (id % 64) & 1) != 0;
  }
  Subscription* find(CUpti_SubscriberHandle handle) const noexcept;
  void set(bool on, Subscription& of, CUpti_CallbackDomain domain, uint32_t id) noexcept;
  void unite() noexcept;  // what any of them wants

  const Environment& environment_;
  mutable std::mutex mutex_;  // subscriptions and masks are changed under it
  // Kept for the life of the process: a callback may still be running on another thread after
  // unsubscription.
  std::deque<Subscription> subscriptions_;
  std::array<std::atomic<Subscription*>, kMostSubscribers> live_{};
  Mask mask_{};  // of all of them
};

}  // namespace simgpu::cupti
