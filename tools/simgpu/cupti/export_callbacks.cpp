// Exported: the callback API.
#include <cupti.h>

#include "callback_names.h"
#include "entry.h"
#include "process.h"

namespace {

using simgpu::cupti::entry;
using simgpu::cupti::Process;

// Only what touches the driver needs one; a subscription does.
CUptiResult subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* user_data,
                      const char* name, char* old_name, size_t old_name_size) {
  Process& process = Process::get();
  if (process.attach() == nullptr)
    return CUPTI_ERROR_UNKNOWN;  // what CUPTI 13.0 answers without a driver
  return process.callbacks.subscribe(handle, callback, user_data, name, old_name, old_name_size);
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiSupportedDomains(size_t* domainCount, CUpti_DomainTable* domainTable) {
  static CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                           CUPTI_CB_DOMAIN_RESOURCE,   CUPTI_CB_DOMAIN_SYNCHRONIZE,
                                           CUPTI_CB_DOMAIN_NVTX,       CUPTI_CB_DOMAIN_STATE};
  return entry([&] {
    if (domainCount == nullptr || domainTable == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *domainCount = std::size(domains);
    *domainTable = domains;
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                                    void* userdata) {
  return entry([&] { return subscribe(subscriber, callback, userdata, nullptr, nullptr, 0); });
}

CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber,
                                       CUpti_CallbackFunc callback, void* userdata,
                                       CUpti_SubscriberParams* pParams) {
  return entry([&] {
    if (pParams == nullptr) return subscribe(subscriber, callback, userdata, nullptr, nullptr, 0);
    if (pParams->structSize != CUpti_SubscriberParams_STRUCT_SIZE)
      return CUPTI_ERROR_INVALID_PARAMETER;
    return subscribe(subscriber, callback, userdata, pParams->subscriberName,
                     pParams->oldSubscriberName, pParams->oldSubscriberSize);
  });
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  return entry([&] { return Process::get().callbacks.unsubscribe(subscriber); });
}

CUptiResult CUPTIAPI cuptiGetCallbackState(uint32_t* enable, CUpti_SubscriberHandle subscriber,
                                           CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  return entry([&] { return Process::get().callbacks.state(enable, subscriber, domain, cbid); });
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

CUptiResult CUPTIAPI cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber) {
  return entry([&] { return Process::get().callbacks.enable_all(enable != 0, subscriber); });
}

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
                                          const char** name) {
  return entry([&] {
    if (name == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *name = domain == CUPTI_CB_DOMAIN_DRIVER_API    ? simgpu::cupti::driver_callback_name(cbid)
            : domain == CUPTI_CB_DOMAIN_RUNTIME_API ? simgpu::cupti::runtime_callback_name(cbid)
                                                    : nullptr;
    return *name == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
  });
}

}  // extern "C"
