// Activity records in the layout of the emulated CUPTI version.
//
// The library that runs decides the layout, not the headers a tool was built with. Each newer
// structure begins with the older one, so an older layout is a prefix:
//   kernels       CUpti_ActivityKernel9 in 12.x, 10 from 13.0, 11 from 13.1, 12 from 13.3,
//                 13 from 13.4
//   memory copies CUpti_ActivityMemcpy5 up to 12.6, 6 from 12.8, 7 from 13.4
//   between devices CUpti_ActivityMemcpyPtoP4; fills CUpti_ActivityMemset4, 5 from 13.4
// What is newer than CUPTI 13.0 in a record is 0.
#pragma once
#include <cupti.h>
#include <simgpu/hooks.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace simgpu::cupti {

// Bytes of one record, always a multiple of ACTIVITY_RECORD_ALIGNMENT; 0 for kinds that are never
// written.
size_t record_size(CUpti_ActivityKind kind, uint32_t version);

// `name` must stay valid as long as the client may read the record: for ever.
// Times in nanoseconds on the device timeline.
CUpti_ActivityKernel10 kernel_record(CUpti_ActivityKind kind, const KernelRun& run,
                                     const char* name);
CUpti_ActivityMemcpy6 memcpy_record(const MemoryCopy& copy);
CUpti_ActivityMemcpyPtoP4 peer_memcpy_record(const MemoryCopy& copy);
CUpti_ActivityMemset4 memset_record(const MemoryCopy& fill);

// cuptiActivityGetNextRecord: the record after `previous` (null: the first).
CUptiResult next_record(std::span<uint8_t> buffer, uint32_t version, CUpti_Activity** record);

}  // namespace simgpu::cupti
