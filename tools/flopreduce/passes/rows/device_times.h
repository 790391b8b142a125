// What a summary keeps of the moments at which kernels ran: sums of a device as a message, and
// back.
#pragma once
#include <cstdint>

#include "flop_trace.pb.h"
#include "tables/totals.h"

namespace flopinj::reduce {

trace::DeviceTimes device_times_message(uint32_t device, const DeviceTime& time);
// False where the message has figures that cannot be.
bool read_device_times(const trace::DeviceTimes& message, DeviceTime& time);

}  // namespace flopinj::reduce
