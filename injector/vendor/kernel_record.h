// Activity records of kernels in the layout of the CUPTI that is running, which is not always that
// of the headers.
#pragma once
#include <collector/identity/launch.h>

#include <cstddef>
#include <cstdint>

namespace flopinj {

// Where the fields that we read lie in a kernel record, bytes.
struct KernelRecordLayout {
  uint32_t first_version;  // of CUPTI that has it
  const char* name;
  size_t start, end, correlation, graph_node;
};

// Null for a CUPTI older than the range profiler.
const KernelRecordLayout* kernel_record_layout(uint32_t cupti_version);
KernelTime read_kernel_time(const KernelRecordLayout&, const void* record);

}  // namespace flopinj
