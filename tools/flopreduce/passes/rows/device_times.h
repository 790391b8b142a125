// What a summary keeps of the moments at which kernels ran: sums of a device as a message, and
// back.
#pragma once
#include <cstdint>
#include <span>

#include "flop_trace.pb.h"
#include "tables/id_map.h"
#include "tables/totals.h"

namespace flopinj::reduce {

// `ids`: of signatures in the trace, by index.
trace::DeviceTimes device_times_message(uint32_t device, const DeviceTime& time,
                                        std::span<const uint32_t> ids);
// False where the message has figures that cannot be. `signatures`: of its trace.
bool read_device_times(const trace::DeviceTimes& message, const IdMap& signatures,
                       DeviceTime& time);

}  // namespace flopinj::reduce
