#include "driver/execution/memory.h"

#include <cupti_activity.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "driver/execution/timing.h"
#include "driver/observer.h"

namespace simgpu {
namespace {

constexpr size_t kHostAlignment = 4096;

struct HostBlocks {
  std::mutex mutex;
  std::map<uint64_t, HostBlock> blocks;
};
HostBlocks& host_blocks() {
  static auto* const blocks = new HostBlocks;
  return *blocks;
}

// Whether [address, address + bytes) lies within one device allocation.
bool allocated(uint64_t address, uint64_t bytes) {
  const Device* device = Runtime::get().device_of_address(address);
  if (device == nullptr) return false;
  const auto block = const_cast<Device*>(device)->memory().find(address);
  return block && bytes <= block->bytes - (address - block->address);
}

uint64_t extent(uint64_t width, uint64_t rows, uint64_t pitch, uint64_t slices,
                uint64_t slice_pitch) {
  if (width == 0 || rows == 0 || slices == 0) return 0;
  return (slices - 1) * slice_pitch + (rows - 1) * pitch + width;
}

uint8_t activity_kind(const CopyWork& work) {
  if (work.from_device && work.to_device) {
    const Runtime& runtime = Runtime::get();
    return runtime.device_of_address(work.from) == runtime.device_of_address(work.to)
               ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD
               : CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  }
  if (work.from_device) return CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  return work.to_device ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

uint8_t memory_kind(uint64_t address, bool on_device) {
  if (on_device) return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  HostBlock block;
  return find_host(address, block) ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED
                                   : CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
}

// Places it on the timeline and reports it to the observer. `copy` says what was done.
void finish(Stream& stream, MemoryCopy copy, bool within_device, uint64_t issued) {
  const Device& device = *stream.context->device;
  const Interval interval =
      place(stream, copy_duration_ns(device.chip(), copy.bytes, within_device), issued);
  copy.context = HandleTable<CUcontext, Context>::handle_of(stream.context.get());
  copy.device_id = static_cast<uint32_t>(device.ordinal());
  copy.context_id = stream.context->id;
  copy.stream_id = stream.id;
  copy.correlation_id = ApiScope::current_correlation_id();
  copy.start_ns = interval.start_ns;
  copy.end_ns = interval.end_ns;
  tell(&Observer::memory_copy, &copy);
}

}  // namespace

CUresult allocate_device(Device& device, uint64_t bytes, CUdeviceptr* address, bool managed) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Runtime& runtime = Runtime::get();
  const uint64_t number = runtime.allocations.fetch_add(1) + 1;
  const uint64_t failing = runtime.settings().faults.out_of_memory;
  if (failing != 0 && number >= failing) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto found = device.memory().allocate(bytes, managed);
  if (!found) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = *found;
  return CUDA_SUCCESS;
}

uint64_t Heap::allocate(Device& device, uint64_t bytes, uint64_t limit) {
  constexpr uint64_t kGranule = 16;
  if (bytes == 0 || bytes > limit) return 0;
  bytes = (bytes + kGranule - 1) / kGranule * kGranule;
  const std::lock_guard lock(mutex_);
  if (used_ + bytes > limit) return 0;
  const auto found = device.memory().allocate(bytes);
  if (!found) return 0;
  pieces_[*found] = bytes;
  used_ += bytes;
  return *found;
}

bool Heap::free(Device& device, uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto it = pieces_.find(address);
  if (it == pieces_.end()) return false;
  used_ -= it->second;
  pieces_.erase(it);
  return device.memory().free(address);
}

void Heap::clear(Device& device) {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, bytes] : pieces_) device.memory().free(address);
  pieces_.clear();
  used_ = 0;
}

CUresult free_device(CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  Device* device = Runtime::get().device_of_address(address);
  const auto here = [&](const Context& context) { return context.device == device; };
  for (const auto& context : Runtime::get().contexts.find_all(here)) drain(*context);
  return device != nullptr && device->memory().free(address) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
}

CUresult allocate_host(uint64_t bytes, unsigned int flags, void** address) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > SIZE_MAX - kHostAlignment) return CUDA_ERROR_OUT_OF_MEMORY;
  void* p = std::aligned_alloc(kHostAlignment,
                               (bytes + kHostAlignment - 1) / kHostAlignment * kHostAlignment);
  if (p == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  HostBlocks& host = host_blocks();
  const std::lock_guard lock(host.mutex);
  host.blocks[reinterpret_cast<uint64_t>(p)] = {reinterpret_cast<uint64_t>(p), bytes, flags, false};
  *address = p;
  return CUDA_SUCCESS;
}

CUresult register_host(void* address, uint64_t bytes, unsigned int flags) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  HostBlock known;
  if (find_host(reinterpret_cast<uint64_t>(address), known))
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  HostBlocks& host = host_blocks();
  const std::lock_guard lock(host.mutex);
  host.blocks[reinterpret_cast<uint64_t>(address)] = {reinterpret_cast<uint64_t>(address), bytes,
                                                      flags, true};
  return CUDA_SUCCESS;
}

CUresult free_host(void* address, bool registered) {
  HostBlocks& host = host_blocks();
  {
    const std::lock_guard lock(host.mutex);
    const auto it = host.blocks.find(reinterpret_cast<uint64_t>(address));
    if (it == host.blocks.end() || it->second.registered != registered)
      return registered ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE;
    host.blocks.erase(it);
  }
  if (!registered) std::free(address);
  return CUDA_SUCCESS;
}

bool find_host(uint64_t address, HostBlock& block) {
  HostBlocks& host = host_blocks();
  const std::lock_guard lock(host.mutex);
  auto it = host.blocks.upper_bound(address);
  if (it == host.blocks.begin()) return false;
  --it;
  if (address - it->first >= it->second.bytes) return false;
  block = it->second;
  return true;
}

CopyWork linear_copy(uint64_t to, uint64_t from, uint64_t bytes) {
  CopyWork work;
  work.to = to;
  work.from = from;
  work.width = bytes;
  work.from_device = Runtime::get().device_of_address(from) != nullptr;
  work.to_device = Runtime::get().device_of_address(to) != nullptr;
  return work;
}

CUresult check_copy(const CopyWork& work) {
  if (work.bytes() == 0) return CUDA_SUCCESS;
  if (work.from == 0 || work.to == 0) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t read =
      extent(work.width, work.rows, work.from_pitch, work.slices, work.from_slice_pitch);
  const uint64_t written =
      extent(work.width, work.rows, work.to_pitch, work.slices, work.to_slice_pitch);
  if (work.from_device && !allocated(work.from, read)) return CUDA_ERROR_INVALID_VALUE;
  if (work.to_device && !allocated(work.to, written)) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult run_copy(Stream& stream, const CopyWork& work) {
  Device& device = *stream.context->device;
  const uint64_t issued = issued_ns();
  const std::lock_guard engine(device.engine());
  for (uint64_t slice = 0; slice < work.slices; ++slice)
    for (uint64_t row = 0; row < work.rows; ++row)
      std::memmove(
          reinterpret_cast<void*>(work.to + slice * work.to_slice_pitch + row * work.to_pitch),
          reinterpret_cast<const void*>(work.from + slice * work.from_slice_pitch +
                                        row * work.from_pitch),
          work.width);
  MemoryCopy copy{};
  copy.kind = activity_kind(work);
  copy.bytes = work.bytes();
  copy.from = memory_kind(work.from, work.from_device);
  copy.to = memory_kind(work.to, work.to_device);
  const auto ordinal_of = [&](uint64_t address) {
    const Device* const at = Runtime::get().device_of_address(address);
    return static_cast<uint32_t>((at != nullptr ? *at : device).ordinal());
  };
  copy.from_device_id = ordinal_of(work.from);
  copy.to_device_id = ordinal_of(work.to);
  finish(stream, copy, copy.kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, issued);
  return CUDA_SUCCESS;
}

CUresult check_fill(const FillWork& work) {
  if (work.to % work.element_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t written = extent(work.width * work.element_bytes, work.rows, work.pitch, 1, 0);
  return written == 0 || allocated(work.to, written) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult run_fill(Stream& stream, const FillWork& work) {
  Device& device = *stream.context->device;
  const uint64_t issued = issued_ns();
  const std::lock_guard engine(device.engine());
  for (uint64_t row = 0; row < work.rows; ++row) {
    auto* at = reinterpret_cast<std::byte*>(work.to + row * work.pitch);
    for (uint64_t i = 0; i < work.width; ++i, at += work.element_bytes)
      std::memcpy(at, &work.value, work.element_bytes);  // little-endian: the low bytes come first
  }
  MemoryCopy fill{};
  fill.kind = CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
  fill.bytes = work.width * work.element_bytes * work.rows;
  fill.value = work.value;
  fill.to = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  fill.from_device_id = fill.to_device_id = static_cast<uint32_t>(device.ordinal());
  finish(stream, fill, true, issued);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
