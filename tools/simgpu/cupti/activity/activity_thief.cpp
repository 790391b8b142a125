#include "activity/activity_thief.h"

#include <cstdlib>
#include <mutex>
#include <set>

namespace simgpu::cupti {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

std::mutex g_mutex;
std::set<uint8_t*>& own_buffers() {
  static auto* const buffers = new std::set<uint8_t*>;
  return *buffers;
}

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;
  const std::scoped_lock lock(g_mutex);
  own_buffers().insert(*buffer);
}

void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) {
  const std::scoped_lock lock(g_mutex);
  if (own_buffers().erase(buffer) != 0) std::free(buffer);
}

}  // namespace

void take_callbacks(ActivityBuffers& buffers) { buffers.set_callbacks(request, complete); }

}  // namespace simgpu::cupti
