#include <injector/vendor/cupti_api.h>

namespace flopinj {

CUptiResult subscribe(CuptiApi& api, CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                      void* user_data) {
  if (api.own.available) {
    SubscriberParams params{};
    params.struct_size = sizeof params;
    params.name = "flopinj";
    params.allow_multiple = 1;
    if (api.own.Subscribe(handle, callback, user_data, &params) == CUPTI_SUCCESS) {
      api.own.handle = *handle;
      return CUPTI_SUCCESS;
    }
  }
  return api.Subscribe(handle, callback, user_data);
}

CUptiResult CuptiApi::enable_activity(CUpti_ActivityKind kind) const {
  return shared() ? own.ActivityEnable(own.handle, kind, nullptr) : ActivityEnable(kind);
}

CUptiResult CuptiApi::disable_activity(CUpti_ActivityKind kind) const {
  return shared() ? own.ActivityDisable(own.handle, kind, nullptr) : ActivityDisable(kind);
}

CUptiResult CuptiApi::set_activity_attribute(CUpti_ActivityAttribute attribute, size_t* size,
                                             void* value) const {
  if (shared()) return own.ActivitySetAttribute(own.handle, attribute, size, value);
  if (ActivitySetAttribute == nullptr) return CUPTI_ERROR_NOT_SUPPORTED;
  return ActivitySetAttribute(attribute, size, value);
}

CUptiResult CuptiApi::next_record(uint8_t* buffer, size_t valid, CUpti_Activity** record) const {
  if (shared() && own.ActivityGetNextRecord != nullptr)
    return own.ActivityGetNextRecord(own.handle, buffer, valid, record);
  return ActivityGetNextRecord(buffer, valid, record);
}

CUptiResult CuptiApi::dropped_records(CUcontext context, uint32_t stream, size_t* dropped) const {
  if (shared() && own.ActivityGetNumDroppedRecords != nullptr)
    return own.ActivityGetNumDroppedRecords(own.handle, context, stream, dropped);
  return ActivityGetNumDroppedRecords(context, stream, dropped);
}

CUptiResult CuptiApi::timestamp(uint64_t* now) const {
  if (shared() && own.GetTimestamp != nullptr) return own.GetTimestamp(own.handle, now);
  if (GetTimestamp == nullptr) return CUPTI_ERROR_NOT_SUPPORTED;
  return GetTimestamp(now);
}

}  // namespace flopinj
