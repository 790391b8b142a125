#include "activity/activity_records.h"

#include <algorithm>

#include "versions.h"

namespace simgpu::cupti {
namespace {

static_assert(offsetof(CUpti_ActivityKernel9, maxActiveClusters) ==
              offsetof(CUpti_ActivityKernel10, maxActiveClusters));
static_assert(offsetof(CUpti_ActivityMemcpy5, channelType) ==
              offsetof(CUpti_ActivityMemcpy6, channelType));

// CUpti_ActivityKernel9 to 13, Memcpy5 to 7, Memset4 and 5. Each begins as the one before.
constexpr SizeSince kKernelSizes[] = {{0, sizeof(CUpti_ActivityKernel9)},
                                      {kCupti130, sizeof(CUpti_ActivityKernel10)},
                                      {kCupti131, 224},
                                      {kCupti133, 232},
                                      {kCupti134, 248}};
constexpr SizeSince kMemcpySizes[] = {{0, sizeof(CUpti_ActivityMemcpy5)},
                                      {kCupti128, sizeof(CUpti_ActivityMemcpy6)},
                                      {kCupti134, 112}};
constexpr SizeSince kMemsetSizes[] = {{0, sizeof(CUpti_ActivityMemset4)}, {kCupti134, 104}};
constexpr bool aligned(std::span<const SizeSince> sizes) {
  return std::ranges::all_of(
      sizes, [](const SizeSince& step) { return step.size % ACTIVITY_RECORD_ALIGNMENT == 0; });
}
static_assert(aligned(kKernelSizes) && aligned(kMemcpySizes) && aligned(kMemsetSizes));

// What all of them have.
template <class Record>
Record record_of(CUpti_ActivityKind kind, const MemoryCopy& copy) {
  Record record{};
  record.kind = kind;
  record.bytes = copy.bytes;
  record.start = copy.start_ns;
  record.end = copy.end_ns;
  record.deviceId = copy.device_id;
  record.contextId = copy.context_id;
  record.streamId = copy.stream_id;
  record.correlationId = copy.correlation_id;
  record.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
  return record;
}

}  // namespace

size_t record_size(CUpti_ActivityKind kind, uint32_t version) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return size_in(kKernelSizes, version, 0);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return size_in(kMemcpySizes, version, 0);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return size_in(kMemsetSizes, version, 0);
    default:
      return 0;
  }
}

CUpti_ActivityKernel10 kernel_record(CUpti_ActivityKind kind, const KernelRun& run,
                                     const char* name) {
  CUpti_ActivityKernel10 record{};
  record.kind = kind;
  record.registersPerThread = static_cast<uint16_t>(run.registers_per_thread);
  record.start = run.start_ns;
  record.end = run.end_ns;
  record.completed = CUPTI_TIMESTAMP_UNKNOWN;
  record.deviceId = run.device_id;
  record.contextId = run.context_id;
  record.streamId = run.stream_id;
  record.gridX = static_cast<int32_t>(run.grid[0]);
  record.gridY = static_cast<int32_t>(run.grid[1]);
  record.gridZ = static_cast<int32_t>(run.grid[2]);
  record.blockX = static_cast<int32_t>(run.block[0]);
  record.blockY = static_cast<int32_t>(run.block[1]);
  record.blockZ = static_cast<int32_t>(run.block[2]);
  record.dynamicSharedMemory = static_cast<int32_t>(run.dynamic_shared_bytes);
  record.correlationId = run.correlation_id;
  record.gridId = run.grid_id;
  record.name = name;
  record.queued = CUPTI_TIMESTAMP_UNKNOWN;
  record.submitted = CUPTI_TIMESTAMP_UNKNOWN;
  record.launchType = run.cooperative != 0 ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE
                                           : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
  record.sharedMemoryExecuted = run.dynamic_shared_bytes;
  record.graphNodeId = run.graph_node_id;
  record.graphId = run.graph_id;
  record.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  record.clusterX = run.cluster[0];
  record.clusterY = run.cluster[1];
  record.clusterZ = run.cluster[2];
  return record;
}

CUpti_ActivityMemcpy6 memcpy_record(const MemoryCopy& copy) {
  auto record = record_of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, copy);
  record.copyKind = copy.kind;
  record.srcKind = copy.from;
  record.dstKind = copy.to;
  record.copyCount = 1;
  return record;
}

CUpti_ActivityMemcpyPtoP4 peer_memcpy_record(const MemoryCopy& copy) {
  auto record = record_of<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, copy);
  record.copyKind = copy.kind;
  record.srcKind = copy.from;
  record.dstKind = copy.to;
  record.srcDeviceId = copy.from_device_id;
  record.dstDeviceId = copy.to_device_id;
  return record;
}

CUpti_ActivityMemset4 memset_record(const MemoryCopy& fill) {
  auto record = record_of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, fill);
  record.value = fill.value;
  record.memoryKind = fill.to;
  return record;
}

CUptiResult next_record(std::span<uint8_t> buffer, uint32_t version, CUpti_Activity** record) {
  uint8_t* next = buffer.data();
  if (*record != nullptr) {
    const size_t step = record_size((*record)->kind, version);
    if (step == 0) return CUPTI_ERROR_INVALID_KIND;
    next = reinterpret_cast<uint8_t*>(*record) + step;
  }
  if (next < buffer.data()) return CUPTI_ERROR_INVALID_PARAMETER;
  const size_t offset = static_cast<size_t>(next - buffer.data());
  if (offset + sizeof(CUpti_Activity) > buffer.size()) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* found = reinterpret_cast<CUpti_Activity*>(next);
  const size_t size = record_size(found->kind, version);
  if (size == 0 || offset + size > buffer.size()) return CUPTI_ERROR_INVALID_KIND;
  *record = found;
  return CUPTI_SUCCESS;
}

}  // namespace simgpu::cupti
