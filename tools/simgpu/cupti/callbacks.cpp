#include "callbacks.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace simgpu::cupti {
namespace {

thread_local bool t_inside_callback = false;
thread_local uint32_t t_exiting_call = 0;

void copy_name(char* out, size_t size, const std::string& name) {
  if (out == nullptr || size == 0) return;
  const size_t length = std::min(size - 1, name.size());
  std::memcpy(out, name.data(), length);
  out[length] = '\0';
}

bool gives_handles(uint32_t cbid) {
  return cbid == CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction ||
         cbid == CUPTI_DRIVER_TRACE_CBID_cuModuleEnumerateFunctions ||
         cbid == CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel ||
         cbid == CUPTI_DRIVER_TRACE_CBID_cuLibraryEnumerateKernels ||
         cbid == CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction;
}

std::string full_name(const char* name) {
  return std::string("CUPTI for ") +
         (name == nullptr ? "unnamed" : std::string(name).substr(0, CUPTI_SUBSCRIBER_NAME_MAX_LEN));
}

}  // namespace

uint32_t Callbacks::ids_in(CUpti_CallbackDomain domain) {
  constexpr uint32_t kIds[] = {0,
                               CUPTI_DRIVER_TRACE_CBID_SIZE,
                               CUPTI_RUNTIME_TRACE_CBID_SIZE,
                               CUPTI_CBID_RESOURCE_SIZE,
                               CUPTI_CBID_SYNCHRONIZE_SIZE,
                               CUPTI_CBID_NVTX_SIZE,
                               CUPTI_CBID_STATE_SIZE};
  static_assert(std::size(kIds) == CUPTI_CB_DOMAIN_STATE + 1);
  return static_cast<size_t>(domain) < std::size(kIds) ? kIds[domain] : 0;
}

CUptiResult Callbacks::subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function,
                                 void* user_data, const char* name, char* old_name,
                                 size_t old_name_size, bool allow_multiple) {
  if (handle == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::scoped_lock lock(mutex_);
  if (environment_.faults.second_subscriber) {
    copy_name(old_name, old_name_size, full_name("another profiler"));
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  std::atomic<Subscription*>* free = nullptr;
  for (auto& slot : live_) {
    const Subscription* const old = slot.load(std::memory_order_relaxed);
    if (old == nullptr) {
      if (free == nullptr) free = &slot;
      continue;
    }
    copy_name(old_name, old_name_size, old->name);
    if (!allow_multiple || !old->allows_others)
      return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  if (free == nullptr) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  subscriptions_.emplace_back(function, user_data, full_name(name), allow_multiple);
  Subscription& created = subscriptions_.back();
  free->store(&created, std::memory_order_release);
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(&created);
  return CUPTI_SUCCESS;
}

CUptiResult Callbacks::unsubscribe(CUpti_SubscriberHandle handle) {
  const std::scoped_lock lock(mutex_);
  Subscription* const subscription = find(handle);
  if (subscription == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  for (auto& slot : live_)
    if (slot.load(std::memory_order_relaxed) == subscription)
      slot.store(nullptr, std::memory_order_release);
  unite();
  return CUPTI_SUCCESS;
}

void Callbacks::reset() {
  const std::scoped_lock lock(mutex_);
  for (auto& slot : live_) slot.store(nullptr, std::memory_order_release);
  unite();
}

Callbacks::Subscription* Callbacks::find(CUpti_SubscriberHandle handle) const noexcept {
  for (const auto& slot : live_) {
    Subscription* const subscription = slot.load(std::memory_order_acquire);
    if (subscription != nullptr && reinterpret_cast<const void*>(handle) == subscription)
      return subscription;
  }
  return nullptr;
}

bool Callbacks::subscribed(CUpti_SubscriberHandle handle) const noexcept {
  return find(handle) != nullptr;
}

bool Callbacks::shared() const noexcept {
  return std::ranges::any_of(live_, [](const auto& slot) {
    const Subscription* const subscription = slot.load(std::memory_order_acquire);
    return subscription != nullptr && subscription->allows_others;
  });
}

void Callbacks::unite() noexcept {
  for (size_t domain = 0; domain < mask_.size(); ++domain)
    for (size_t word = 0; word < mask_[domain].size(); ++word) {
      uint64_t bits = 0;
      for (const auto& slot : live_)
        if (const Subscription* const s = slot.load(std::memory_order_relaxed); s != nullptr)
          bits |= s->mask[domain][word].load(std::memory_order_relaxed);
      mask_[domain][word].store(bits, std::memory_order_relaxed);
    }
}

void Callbacks::set(bool on, Subscription& of, CUpti_CallbackDomain domain, uint32_t id) noexcept {
  const uint64_t bit = uint64_t{1} << (id % 64);
  auto& word = of.mask[domain][id / 64];
  if (on)
    word.fetch_or(bit, std::memory_order_relaxed);
  else
    word.fetch_and(~bit, std::memory_order_relaxed);
}

CUptiResult Callbacks::enable(bool on, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                              CUpti_CallbackId id) {
  if (Subscription* const first = find(handle); first != nullptr && !first->asked.exchange(true))
    std::this_thread::sleep_for(std::chrono::milliseconds(environment_.faults.slow_enable));
  const std::scoped_lock lock(mutex_);
  Subscription* const of = find(handle);
  if (of == nullptr || id == 0 || id >= ids_in(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
  set(on, *of, domain, id);
  unite();
  return CUPTI_SUCCESS;
}

CUptiResult Callbacks::enable_domain(bool on, CUpti_SubscriberHandle handle,
                                     CUpti_CallbackDomain domain) {
  const std::scoped_lock lock(mutex_);
  const uint32_t ids = ids_in(domain);
  Subscription* const of = find(handle);
  if (of == nullptr || ids == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  for (uint32_t id = 1; id < ids; ++id) set(on, *of, domain, id);
  unite();
  return CUPTI_SUCCESS;
}

void Callbacks::deliver(CUpti_CallbackDomain domain, uint32_t id, const void* data) noexcept {
  // A tool's own calls are not reported to it, but for the modules that they cause to be loaded.
  const bool nested = t_inside_callback;
  if (nested && domain != CUPTI_CB_DOMAIN_RESOURCE) return;
  t_inside_callback = true;
  for (const auto& slot : live_) {
    const Subscription* const to = slot.load(std::memory_order_acquire);
    if (to != nullptr && to->function != nullptr && is_set(to->mask, domain, id))
      to->function(to->user_data, domain, id, data);
  }
  t_inside_callback = nested;
}

void Callbacks::api(const ApiCall& call, CUpti_ApiCallbackSite site) noexcept {
  if (!wants(CUPTI_CB_DOMAIN_DRIVER_API, call.cbid)) return;
  if (environment_.faults.hidden_handles && gives_handles(call.cbid)) return;
  CUresult result = call.result;
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionName = call.name;
  data.functionParams = call.params;
  data.functionReturnValue = site == CUPTI_API_EXIT ? &result : nullptr;
  data.symbolName = call.symbol;
  data.context = call.context;
  data.contextUid = call.context_id;
  data.correlationData = call.correlation_data;
  data.correlationId = call.correlation_id;
  const bool exits = site == CUPTI_API_EXIT && !t_inside_callback;
  if (exits) t_exiting_call = call.correlation_id;
  deliver(CUPTI_CB_DOMAIN_DRIVER_API, call.cbid, &data);
  if (exits) t_exiting_call = 0;
}

uint32_t Callbacks::exiting_call() noexcept { return t_exiting_call; }
bool Callbacks::inside() noexcept { return t_inside_callback; }

}  // namespace simgpu::cupti
