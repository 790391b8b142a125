// Exported: the callback API.
#include <cupti.h>

#include <cstddef>

#include "callback_names.h"
#include "entry.h"
#include "process.h"

namespace {

using namespace simgpu::cupti;

// Only what touches the driver needs one; a subscription does.
CUptiResult subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* user_data,
                      const char* name, char* old_name, size_t old_name_size, bool allow_multiple) {
  Process& process = Process::get();
  if (process.attach() == nullptr) return process.no_driver();
  return process.callbacks.subscribe(handle, callback, user_data, name, old_name, old_name_size,
                                     allow_multiple);
}

// From 13.2 on a byte behind what the headers of 13.0 have.
bool allows_multiple(const CUpti_SubscriberParams& params) {
  constexpr size_t kAt = offsetof(CUpti_SubscriberParams, oldSubscriberSize) + sizeof(size_t);
  return params.structSize > kAt && reinterpret_cast<const char*>(&params)[kAt] != 0;
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                                    void* userdata) {
  return entry(
      [&] { return subscribe(subscriber, callback, userdata, nullptr, nullptr, 0, false); });
}

CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber,
                                       CUpti_CallbackFunc callback, void* userdata,
                                       CUpti_SubscriberParams* pParams) {
  return entry([&] {
    if (pParams == nullptr)
      return subscribe(subscriber, callback, userdata, nullptr, nullptr, 0, false);
    if (!valid(pParams, CUpti_SubscriberParams_STRUCT_SIZE)) return CUPTI_ERROR_INVALID_PARAMETER;
    return subscribe(subscriber, callback, userdata, pParams->subscriberName,
                     pParams->oldSubscriberName, pParams->oldSubscriberSize,
                     allows_multiple(*pParams));
  });
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  return entry([&] { return Process::get().callbacks.unsubscribe(subscriber); });
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  return entry(
      [&] { return Process::get().callbacks.enable(enable != 0, subscriber, domain, cbid); });
}

CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                       CUpti_CallbackDomain domain) {
  return entry(
      [&] { return Process::get().callbacks.enable_domain(enable != 0, subscriber, domain); });
}

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
                                          const char** name) {
  return entry([&] {
    if (name == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *name = domain == CUPTI_CB_DOMAIN_DRIVER_API    ? driver_callback_name(cbid)
            : domain == CUPTI_CB_DOMAIN_RUNTIME_API ? runtime_callback_name(cbid)
                                                    : nullptr;
    return *name == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
  });
}

}  // extern "C"
