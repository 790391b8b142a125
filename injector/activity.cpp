#include <injector/activity.h>
#include <injector/kernel_record.h>

#include <array>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace flopinj {
namespace {

constexpr size_t kBuffers = 8;
constexpr size_t kBufferBytes = 1U << 20;
constexpr size_t kAlignment = 8;  // asked for by CUPTI

// CUPTI's buffer callbacks carry no user data.
std::atomic<Activity*> g_active{nullptr};

}  // namespace

// Made lazily, never freed while CUPTI may hold one.
struct Activity::Pool {
  std::mutex mutex;
  std::vector<uint8_t*> free;
  size_t made = 0;

  uint8_t* take() {
    const std::lock_guard lock(mutex);
    if (!free.empty()) {
      uint8_t* const buffer = free.back();
      free.pop_back();
      return buffer;
    }
    if (made == kBuffers) return nullptr;
    auto* const buffer = static_cast<uint8_t*>(
        ::operator new (kBufferBytes, std::align_val_t{kAlignment}, std::nothrow));
    if (buffer != nullptr) ++made;
    return buffer;
  }
  void give_back(uint8_t* buffer) {
    const std::lock_guard lock(mutex);
    free.push_back(buffer);
  }
};

struct Activity::Callbacks {
  static void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* max_records) noexcept {
    Activity* const self = g_active.load(std::memory_order_acquire);
    *buffer = self == nullptr ? nullptr : self->pool_->take();
    *size = *buffer == nullptr ? 0 : kBufferBytes;
    *max_records = 0;  // as many as fit
  }

  static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t,
                                 size_t valid_bytes) noexcept {
    const Guard guard;
    Activity* const self = g_active.load(std::memory_order_acquire);
    if (self == nullptr || buffer == nullptr) return;
    self->read(buffer, valid_bytes);
    size_t dropped = 0;
    if (self->edge_.cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
      self->lost_.fetch_add(dropped, std::memory_order_relaxed);
    self->pool_->give_back(buffer);
  }
};

Activity::Activity(Edge& edge) : edge_(edge), pool_(std::make_unique<Pool>()) {
  pool_->free.reserve(kBuffers);
}

Activity::~Activity() {
  stop();
  Activity* self = this;
  g_active.compare_exchange_strong(self, nullptr);
}

void Activity::read(uint8_t* buffer, size_t valid_bytes) noexcept {
  const KernelRecordLayout* const layout = kernel_record_layout(edge_.cupti.version);
  std::array<KernelTime, 256> times;
  size_t count = 0;
  CUpti_Activity* record = nullptr;
  while (layout != nullptr &&
         edge_.cupti.ActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
        record->kind != CUPTI_ACTIVITY_KIND_KERNEL)
      continue;
    times[count++] = read_kernel_time(*layout, record);
    if (count == times.size()) edge_.collector->times({times.data(), std::exchange(count, 0)});
  }
  if (count > 0) edge_.collector->times({times.data(), count});
}

bool Activity::start(std::string& error) {
  const CuptiApi& cupti = edge_.cupti;
  if (kernel_record_layout(cupti.version) == nullptr) {
    error = "CUPTI API version " + std::to_string(cupti.version) +
            " is older than any whose kernel records are known; use CUPTI 12.6 or later";
    return false;
  }
  g_active.store(this, std::memory_order_release);
  CUptiResult result = cupti.ActivityRegisterCallbacks(Callbacks::requested, Callbacks::completed);
  if (result == CUPTI_SUCCESS) result = cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (result != CUPTI_SUCCESS) {
    error = "CUPTI gives no kernel times: " + describe(cupti, result);
    return false;
  }
  running_.store(true, std::memory_order_release);
  return true;
}

void Activity::flush() {
  if (!running_.load(std::memory_order_acquire)) return;
  const Guard guard;
  const bool all = finishing_.load(std::memory_order_relaxed);
  edge_.cupti.ActivityFlushAll(all ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
}

void Activity::stop() {
  if (!running_.exchange(false)) return;
  const Guard guard;
  edge_.cupti.ActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

}  // namespace flopinj
