// When devices copied memory, from the packets that say so.
#pragma once
#include "flop_trace.pb.h"
#include "flop_trace_fields.h"
#include "passes/rows/busy_interval.h"
#include "reader/message.h"
#include "reader/packet_reader.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// Calls visit(number of the device in TraceTables, begin, length), in order. Of a device on which
// nothing was launched nothing is said.
template <typename Visit>
void for_each_copy(const TraceTables& tables, uint32_t trace, const Packet& packet, Visit&& visit) {
  trace::Copies copies;
  if (packet.body_field != static_cast<uint32_t>(trace_fields::TracePacketField::copies) ||
      !parse_message(copies, packet.body) || copies.gap_ns_size() != copies.duration_ns_size())
    return;
  const uint32_t device = tables.traces[trace].devices.get(copies.device() + 1);
  if (device == kNoIndex) return;
  uint64_t now = copies.first_start_ns();
  for (int i = 0; i < copies.gap_ns_size(); ++i) {
    add_saturating(now, copies.gap_ns(i));
    const uint64_t ns = copies.duration_ns(i);
    if (!BusyInterval::has_place(now, ns)) return;
    visit(device, now, ns);
    now += ns;
  }
}

}  // namespace flopinj::reduce
