#include <injector/activity/activity.h>
#include <injector/process/log.h>
#include <injector/process/presence.h>
#include <injector/process/process_state.h>
#include <injector/process/this_thread.h>
#include <injector/vendor/copy_record.h>
#include <injector/vendor/cupti_check.h>
#include <injector/vendor/kernel_record.h>
#include <injector/vendor/relaxed_capture.h>

#include <array>
#include <utility>

namespace flopinj {
namespace {

// CUPTI's buffer callbacks carry no user data.
std::atomic<Activity*> g_active{nullptr};
std::atomic<ActivityBuffers*> g_buffers{nullptr};  // where they are from

}  // namespace

struct Activity::Callbacks {
  static void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* max_records) noexcept {
    ActivityBuffers* const buffers = g_buffers.load(std::memory_order_acquire);
    const auto given = buffers == nullptr ? ActivityBuffers::Buffer{} : buffers->take();
    *buffer = given.data;
    *size = given.bytes;
    *max_records = 0;  // as many as fit
  }

  // The same, of a shared CUPTI.
  static void CUPTIAPI own_requested(uint8_t** buffer, size_t* size, size_t* max_records,
                                     void*) noexcept {
    requested(buffer, size, max_records);
  }
  static void CUPTIAPI own_completed(uint8_t* buffer, size_t size, size_t valid_bytes,
                                     void*) noexcept {
    completed(nullptr, 0, buffer, size, valid_bytes);
  }

  static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t,
                                 size_t valid_bytes) noexcept {
    const RecursionGuard guard;
    const Visit visit(guard);
    ActivityBuffers* const buffers = g_buffers.load(std::memory_order_acquire);
    if (buffer == nullptr) return;
    if (Activity* const self = g_active.load(std::memory_order_acquire);
        self != nullptr && visit.allowed()) {
      if (!buffers->left_behind(buffer)) self->read(buffer, valid_bytes);
      size_t dropped = 0;
      if (self->edge_.cupti.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS)
        self->lost_.fetch_add(dropped, std::memory_order_relaxed);
    }
    if (buffers != nullptr) buffers->give_back(buffer);
  }
};

Activity::Activity(Edge& edge, ActivityBuffers& buffers, Clock now_ns)
    : edge_(edge),
      now_ns_(now_ns),
      may_refuse_(edge.cupti.version >= kFirstVersionThatTakesNoBuffer),
      buffers_(buffers),
      shortages_before_(buffers.shortages()) {}

ActivityBuffers* Activity::process_buffers(const CuptiApi& cupti) noexcept {
  ActivityBuffers*& buffers = process_state().activity_buffers;
  try {
    if (buffers == nullptr)
      buffers = new ActivityBuffers(ActivityBuffers::Limits{},
                                    cupti.version >= kFirstVersionThatTakesNoBuffer);
  } catch (const std::exception&) {  // no memory
  }
  return buffers;
}

Activity::~Activity() {
  stop();
  Activity* self = this;
  g_active.compare_exchange_strong(self, nullptr);  // also of one that did not start
}

void Activity::read(uint8_t* buffer, size_t valid_bytes) noexcept {
  const KernelRecordLayout* const layout = kernel_record_layout(edge_.cupti.version);
  std::array<KernelTime, 256> times;
  std::array<CopyTime, 64> copies;
  size_t count = 0, copied = 0;
  CUpti_Activity* record = nullptr;
  CUptiResult result = CUPTI_SUCCESS;
  while (layout != nullptr &&
         (result = edge_.cupti.next_record(buffer, valid_bytes, &record)) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
        record->kind != CUPTI_ACTIVITY_KIND_KERNEL) {
      if (read_copy(*record, copies[copied]) && ++copied == copies.size())
        edge_.collector->copies({copies.data(), std::exchange(copied, 0)});
      continue;
    }
    times[count++] = read_kernel_time(*layout, record);
    records_.fetch_add(1, std::memory_order_relaxed);
    if (count == times.size()) edge_.collector->times({times.data(), std::exchange(count, 0)});
  }
  if (count > 0) edge_.collector->times({times.data(), count});
  if (copied > 0) edge_.collector->copies({copies.data(), copied});
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED && valid_bytes != 0)
    unread_.fetch_add(1, std::memory_order_relaxed);
}

bool Activity::start(std::string& error) {
  const CuptiApi& cupti = edge_.cupti;
  if (kernel_record_layout(cupti.version) == nullptr) {
    error = "CUPTI API version " + std::to_string(cupti.version) +
            " is older than any whose kernel records are known; use CUPTI 12.1 or later";
    return false;
  }
  g_buffers.store(&buffers_, std::memory_order_release);
  g_active.store(this, std::memory_order_release);
  // One sequence of buffers for all threads: the default before CUPTI 13. With a buffer for each
  // thread, memory would grow with the program's threads. Has to be said before what follows.
  uint8_t per_thread = 0;
  size_t size = sizeof per_thread;
  cupti.set_activity_attribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &per_thread);
  const CUptiResult result = ask_for_records();
  if (result != CUPTI_SUCCESS) {
    error = "CUPTI gives no kernel times: " + describe(result);
    return false;
  }
  running_.store(true, std::memory_order_release);
  return true;
}

CUptiResult Activity::ask_for_records() {
  const CuptiApi& cupti = edge_.cupti;
  const CUptiResult result =
      cupti.shared() ? cupti.own.ActivityRegisterCallbacks(
                           cupti.own.handle, Callbacks::own_requested, Callbacks::own_completed)
                     : cupti.ActivityRegisterCallbacks(Callbacks::requested, Callbacks::completed);
  if (result != CUPTI_SUCCESS) return result;
  return enable_records();
}

// Kernels are what matters: without records of copies theirs are taken all the same.
CUptiResult Activity::enable_records() {
  edge_.kernel_records.store(true);
  const bool off = edge_.kernel_records_off != 0;  // who has them off enables them again
  const CUptiResult result =
      off ? CUPTI_SUCCESS : edge_.cupti.enable_activity(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (result != CUPTI_SUCCESS || edge_.settings.no_copies) return result;
  bool all = true;
  for (const CUpti_ActivityKind kind : kCopyKinds)
    all = edge_.cupti.enable_activity(kind) == CUPTI_SUCCESS && all;
  if (!running_.load(std::memory_order_relaxed)) has_copies_.store(all, std::memory_order_relaxed);
  return result;
}

CUptiResult Activity::disable_records() {
  edge_.kernel_records.store(false);
  if (!edge_.settings.no_copies)
    for (const CUpti_ActivityKind kind : kCopyKinds) edge_.cupti.disable_activity(kind);
  return edge_.cupti.disable_activity(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

void Activity::flush() {
  if (!running_.load(std::memory_order_acquire) || edge_.cupti_failed) return;
  const RecursionGuard guard;
  const RelaxedCapture relaxed(edge_.cuda);
  const bool all = finishing_.load(std::memory_order_relaxed);
  const uint64_t taken = buffers_.taken();
  const CUptiResult result =
      edge_.cupti.ActivityFlushAll(all ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  if (result != CUPTI_SUCCESS) flushed_ = result;
  if (!all) mind_the_bound();
  say_losses();
  if (const size_t kept = all ? buffers_.held_of(taken) : 0; kept != 0)
    edge_.collector->diagnostic(Severity::kInfo, "cupti.activity_kept",
                                "CUPTI has kept buffers of kernel times, though it was asked for "
                                "all: launches in them have no GPU time");
  watch(all);
}

// Before the other client's callbacks were there, CUPTI may have been given buffers of ours: they
// come back to it and are lost to us, a few at most.
void Activity::watch(bool last) {
  if (paused_) return;
  const uint64_t launches = edge_.collector->launches_made();
  const uint64_t records = records_.load(std::memory_order_relaxed);
  // Where they were off silence is no wonder.
  const uint32_t switched = edge_.kernel_records_switched;
  if (std::exchange(switched_, switched) != switched || edge_.kernel_records_off != 0)
    return watch_.excuse(launches, records);
  const auto advice = watch_.look(launches, records, now_ns_());
  const bool explained = shortage_said_ || unread_said_ || flush_said_;
  if ((advice == ActivityWatch::Advice::kSayIt || (last && watch_.unanswered() != 0)) &&
      !explained) {
    const std::string line =
        "kernels are launched and CUPTI gives no times of them: another profiler in the program "
        "(torch.profiler) has taken them, or a kernel runs for very long. Launches without a time "
        "are counted all the same; leave the other profiler out to have all times";
    edge_.collector->diagnostic(Severity::kWarning, "cupti.activity_taken", line);
    if (!last && !std::exchange(taken_said_, true)) log::warn(line);
  }
  if (advice != ActivityWatch::Advice::kAskAgain) return;
  if (ask_for_records() != CUPTI_SUCCESS) return;
  edge_.collector->diagnostic(Severity::kInfo, "cupti.activity_again",
                              "no kernel times had come: they were asked for again; a profiler in "
                              "the program that was at work has had none since");
}

// On the writer's thread: CUPTI's functions are not called while it asks for a buffer.
void Activity::mind_the_bound() {
  if (paused_ && buffers_.has_room())
    paused_ = enable_records() != CUPTI_SUCCESS;
  else if (!paused_ && !may_refuse_ && buffers_.crowded())
    paused_ = disable_records() == CUPTI_SUCCESS;
}

// Each once, whatever the reason that launches have no times.
void Activity::say_losses() {
  const auto say = [this](const char* code, const std::string& line) {
    log::warn(line);
    edge_.collector->diagnostic(Severity::kWarning, code, line);
  };
  if (buffers_.shortages() != shortages_before_ && !std::exchange(shortage_said_, true))
    say("cupti.activity_buffers",
        "CUPTI holds more unfinished kernel times than there is memory for (" +
            std::to_string(buffers_.held_bytes() >> 20) +
            " MiB): launches have no GPU time until it gives some back");
  if (unread_.load(std::memory_order_relaxed) != 0 && !std::exchange(unread_said_, true))
    say("cupti.activity_unread",
        "CUPTI gave kernel times that it could not read itself: launches have no GPU time");
  if (flushed_ != CUPTI_SUCCESS && !std::exchange(flush_said_, true))
    say("cupti.activity_flush", "CUPTI does not hand out kernel times before a buffer is full (" +
                                    describe(flushed_) + "): launches may have no GPU time");
}

void Activity::stop() {
  if (!running_.exchange(false)) return;
  const RecursionGuard guard;
  if (!edge_.cupti_failed) disable_records();
  Activity* self = this;
  g_active.compare_exchange_strong(self, nullptr);
}

void Activity::end() {
  stop();
  if (edge_.cupti_failed) return;
  const RecursionGuard guard;
  edge_.cupti.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

}  // namespace flopinj
