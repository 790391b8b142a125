#include <injector/process/capture_range.h>
#include <injector/vendor/cuda_api.h>
#include <injector/vendor/cupti_check.h>
#include <injector/vendor/driver_calls.h>

#include <utility>

namespace flopinj {
namespace {

constexpr CUpti_CallbackId kBegins = CUPTI_DRIVER_TRACE_CBID_cuProfilerStart,
                           kEnds = CUPTI_DRIVER_TRACE_CBID_cuProfilerStop;

}  // namespace

bool begins_range(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) noexcept {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || id != kBegins) return false;
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  return call.callbackSite == CUPTI_API_EXIT && succeeded(call);
}

bool ends_range(CUpti_CallbackId id, const CUpti_CallbackData& call) noexcept {
  return id == kEnds && call.callbackSite == CUPTI_API_ENTER;
}

bool wait_for_range(const std::string& cupti, CUpti_CallbackFunc callback, std::string& error) {
  CudaApi cuda;
  load_cuda(cuda);
  Subscription made;
  if (!load_cupti(cupti, cuda, made.api, error)) return false;
  Problem problem;
  const auto enable = [&](CUpti_CallbackId id) {
    return made.api.EnableCallback(1, made.handle, CUPTI_CB_DOMAIN_DRIVER_API, id);
  };
  if (!check(subscribe(made.api, &made.handle, callback, nullptr), "cuptiSubscribe", problem))
    return error = problem.line, false;
  // Kept before the callbacks are enabled, which may come at once.
  give_back_subscription(made);
  if (check(enable(kBegins), "cuptiEnableCallback", problem) &&
      check(enable(kEnds), "cuptiEnableCallback", problem))
    return true;
  made.api.Unsubscribe(made.handle);
  take_subscription();
  return error = problem.line, false;
}

bool subscription_waits(CuptiApi& api) {
  AwaitedRange& awaited = process_state().awaited_range;
  const MutexLock lock(awaited.mutex);
  if (!awaited.subscription) return false;
  api = awaited.subscription->api;
  return true;
}

std::optional<Subscription> take_subscription() noexcept {
  AwaitedRange& awaited = process_state().awaited_range;
  const MutexLock lock(awaited.mutex);
  return std::exchange(awaited.subscription, std::nullopt);
}

void give_back_subscription(const Subscription& subscription) {
  AwaitedRange& awaited = process_state().awaited_range;
  const MutexLock lock(awaited.mutex);
  awaited.subscription = subscription;
}

}  // namespace flopinj
