#include <cupti.h>
#include <cupti_activity_deprecated.h>
#include <injector/vendor/kernel_record.h>

#include <array>
#include <cstring>

namespace flopinj {
namespace {

template <class Record>
constexpr KernelRecordLayout layout_of(uint32_t first_version, const char* name) {
  return {first_version,
          name,
          offsetof(Record, start),
          offsetof(Record, end),
          offsetof(Record, correlationId),
          offsetof(Record, graphNodeId)};
}

// Newest first. So far records have only grown at their end; a layout that moves a field adds a
// row.
constexpr std::array kLayouts {
#if CUPTI_API_VERSION >= 130000
  layout_of<CUpti_ActivityKernel10>(130'000, "CUpti_ActivityKernel10"),
#endif
      layout_of<CUpti_ActivityKernel9>(18, "CUpti_ActivityKernel9"),  // of CUPTI 12.1
};

template <class T>
T field(const void* record, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(record) + offset, sizeof value);
  return value;
}

}  // namespace

const KernelRecordLayout* kernel_record_layout(uint32_t cupti_version) {
  for (const auto& layout : kLayouts)
    if (cupti_version >= layout.first_version) return &layout;
  return nullptr;
}

KernelTime read_kernel_time(const KernelRecordLayout& layout, const void* record) {
  KernelTime time;
  time.correlation = field<uint32_t>(record, layout.correlation);
  time.graph_node = field<uint64_t>(record, layout.graph_node);
  time.start_ns = field<uint64_t>(record, layout.start);
  time.end_ns = field<uint64_t>(record, layout.end);
  return time;
}

}  // namespace flopinj
