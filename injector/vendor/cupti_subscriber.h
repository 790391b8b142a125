// CUPTI's functions that name their subscriber ("_v2", from 13.2 on). With them several clients of
// CUPTI live in one process, each with buffers and records of its own, where all of them ask for
// it. A client that does not ask may get nothing beside us: XLA asks for it (openxla/xla, pull
// request 46077), PyTorch's profiler does not yet (pytorch/kineto). So it is asked for where the
// functions are, and PyTorch is not. There our records are what is given up (activity_watch.h).
//
// The build's headers may be older: what is declared here is as in the headers of 13.2 to 13.5.
// Their records are those of the functions without a subscriber.
#pragma once
#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include <cstddef>
#include <cstdint>

namespace flopinj {

struct SubscriberParams {
  size_t struct_size;
  const char* name;
  char* old_name;
  size_t old_name_size;
  uint8_t allow_multiple;
  uint8_t padding[7];
};
static_assert(sizeof(SubscriberParams) == 40 && offsetof(SubscriberParams, old_name_size) == 24 &&
              offsetof(SubscriberParams, allow_multiple) == 32);

using BufferRequested = void(CUPTIAPI*)(uint8_t** buffer, size_t* size, size_t* most_records,
                                        void* info);
using BufferCompleted = void(CUPTIAPI*)(uint8_t* buffer, size_t size, size_t valid, void* info);

// clang-format off
// needed: without any one of these a process has one client. newer: from 13.3 on; where they are
// missing the functions without a subscriber serve.
#define FLOPINJ_CUPTI_SUBSCRIBER_FUNCTIONS(needed, newer)                                         \
  needed(Subscribe, CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, SubscriberParams*)        \
  needed(ActivityRegisterCallbacks, CUpti_SubscriberHandle, BufferRequested, BufferCompleted)     \
  needed(ActivityEnable, CUpti_SubscriberHandle, CUpti_ActivityKind, void*)                       \
  needed(ActivityDisable, CUpti_SubscriberHandle, CUpti_ActivityKind, void*)                      \
  needed(ActivitySetAttribute, CUpti_SubscriberHandle, CUpti_ActivityAttribute, size_t*, void*)   \
  newer(GetTimestamp, CUpti_SubscriberHandle, uint64_t*)                                          \
  newer(ActivityGetNextRecord, CUpti_SubscriberHandle, uint8_t*, size_t, CUpti_Activity**)        \
  newer(ActivityGetNumDroppedRecords, CUpti_SubscriberHandle, CUcontext, uint32_t, size_t*)
// clang-format on

struct CuptiSubscriberApi {
#define FLOPINJ_MEMBER(name, ...) CUptiResult(CUPTIAPI* name)(__VA_ARGS__) = nullptr;
  FLOPINJ_CUPTI_SUBSCRIBER_FUNCTIONS(FLOPINJ_MEMBER, FLOPINJ_MEMBER)
#undef FLOPINJ_MEMBER
  bool available = false;                   // all that are needed
  CUpti_SubscriberHandle handle = nullptr;  // of our subscription, where others may be beside it
};

}  // namespace flopinj
