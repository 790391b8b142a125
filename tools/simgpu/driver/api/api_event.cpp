// Events.
#include <algorithm>

#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/execution/clock.h"
#include "driver/graphs/capture.h"

namespace simgpu::api {
namespace {

constexpr unsigned int kEventFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

// Where the event is in its stream.
CUresult look(Event& event, Mark* mark) {
  const std::lock_guard lock(event.mutex);
  *mark = event.mark;
  return event.capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

// CUDA_ERROR_NOT_READY while its stream has not come to it.
CUresult completed(Event& event, uint64_t* time) {
  Mark mark;
  if (const CUresult error = look(event, &mark); error != CUDA_SUCCESS) return error;
  if (!mark.reached()) return CUDA_ERROR_NOT_READY;
  const std::lock_guard lock(event.mutex);
  *time = event.recorded ? event.time_ns : 0;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags) {
  if (phEvent == nullptr || (Flags & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto context = current_context();
  if (!context) return context.error;
  auto event = std::make_shared<Event>();
  event->context = context.object;
  event->flags = Flags;
  *phEvent = Runtime::get().events.insert(std::move(event));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent hEvent) { return api::cuEventDestroy_v2(hEvent); }

CUresult cuEventDestroy_v2(CUevent hEvent) {
  return Runtime::get().events.erase(hEvent) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
  const auto event = Runtime::get().events.find(hEvent);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
  return record_event(stream.object, event);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
  if ((flags & ~static_cast<unsigned int>(CU_EVENT_RECORD_EXTERNAL)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  return api::cuEventRecord(hEvent, hStream);
}

CUresult cuEventQuery(CUevent hEvent) {
  const auto event = Runtime::get().events.find(hEvent);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t time = 0;
  if (const CUresult error = completed(*event, &time); error != CUDA_SUCCESS) return error;
  return time <= now_ns() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent hEvent) {
  const auto event = Runtime::get().events.find(hEvent);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  Mark mark;
  if (const CUresult error = look(*event, &mark); error != CUDA_SUCCESS) return error;
  mark.wait();
  uint64_t time = 0;
  if (const CUresult error = completed(*event, &time); error != CUDA_SUCCESS) return error;
  wait_until_ns(time);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  if (pMilliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto start = Runtime::get().events.find(hStart), end = Runtime::get().events.find(hEnd);
  if (!start || !end || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0)
    return CUDA_ERROR_INVALID_HANDLE;
  uint64_t from = 0, to = 0;
  if (const CUresult error = completed(*start, &from); error != CUDA_SUCCESS) return error;
  if (const CUresult error = completed(*end, &to); error != CUDA_SUCCESS) return error;
  if (from == 0 || to == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (std::max(from, to) > now_ns()) return CUDA_ERROR_NOT_READY;
  *pMilliseconds = static_cast<float>((static_cast<double>(to) - static_cast<double>(from)) * 1e-6);
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12080
CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return api::cuEventElapsedTime(pMilliseconds, hStart, hEnd);
}
#endif

}  // namespace simgpu::api
