// When devices copied memory, from the packets that say so.
#pragma once
#include "flop_trace.pb.h"
#include "flop_trace_fields.h"
#include "passes/rows/busy_interval.h"
#include "reader/message.h"
#include "reader/packet_reader.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// Calls visit(begin, length) of copies whose times fit, in order. Returns how many have others,
// such as a beginning below 0, written as 2^64 less.
template <typename Visit>
uint64_t for_each_copy_in(const trace::Copies& copies, Visit&& visit) {
  uint64_t now = copies.first_start_ns(), last = 0, bad = 0;
  for (int i = 0; i < copies.gap_ns_size(); ++i) {
    now += copies.gap_ns(i);
    const uint64_t ns = copies.duration_ns(i);
    const bool fits = BusyInterval::has_place(now, ns) && now >= last;
    if (fits)
      visit(last = now, ns);
    else
      ++bad;
    now += ns;
  }
  return bad;
}

// Calls visit(number of the device in TraceTables, begin, length), in order. Of a device on which
// nothing was launched nothing is said. Returns what for_each_copy_in() does.
template <typename Visit>
uint64_t for_each_copy(const TraceTables& tables, uint32_t trace, const Packet& packet,
                       Visit&& visit) {
  trace::Copies copies;
  if (packet.body_field != static_cast<uint32_t>(trace_fields::TracePacketField::copies) ||
      !parse_message(copies, packet.body) || copies.gap_ns_size() != copies.duration_ns_size())
    return 0;
  const uint32_t device = tables.traces[trace].devices.get(copies.device() + 1);
  if (device == kNoIndex) return 0;
  return for_each_copy_in(copies, [&](uint64_t begin, uint64_t ns) { visit(device, begin, ns); });
}

}  // namespace flopinj::reduce
