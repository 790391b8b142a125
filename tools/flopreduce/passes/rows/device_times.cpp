#include "passes/rows/device_times.h"

#include <algorithm>
#include <utility>

#include "passes/rows/busy_interval.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {
namespace {

uint64_t at_most_64_bits(u128 value) {
  return value > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(value);
}

constexpr int kInGap = 4;  // numbers of DeviceTimes.longest_idle

bool read_longest_idle(const trace::DeviceTimes& m, const IdMap& signatures, BusyTime& busy) {
  const auto& all = m.longest_idle();
  if (all.size() % kInGap != 0 || static_cast<size_t>(all.size()) > BusyTime::kLargest * kInGap)
    return false;
  const auto kernel = [&](uint64_t id) {
    const uint32_t index = id <= UINT32_MAX ? signatures.get(static_cast<uint32_t>(id)) : kNoIndex;
    return index != kNoIndex ? index : SignatureTable::kUndefined;
  };
  uint64_t longest = m.end_ns() - m.begin_ns();
  for (int i = 0; i < all.size(); i += kInGap) {
    const uint64_t begin = all[i], ns = all[i + 1];
    if (ns > longest || begin > m.end_ns() - m.begin_ns() - ns) return false;
    longest = ns;
    busy.largest.push_back({m.begin_ns() + begin, ns, kernel(all[i + 2]), kernel(all[i + 3])});
  }
  return true;
}

}  // namespace

trace::DeviceTimes device_times_message(uint32_t id, const DeviceTime& time,
                                        std::span<const uint32_t> ids) {
  const BusyTime& busy = time.busy;
  trace::DeviceTimes message;
  message.set_device(id);
  message.set_placed(time.placed);
  message.set_kernel_ns(at_most_64_bits(time.kernel_ns));
  message.set_begin_ns(busy.begin_ns);
  message.set_end_ns(busy.end_ns);
  message.set_busy_ns(busy.busy_ns);
  size_t decades = busy.idle.size();
  while (decades > 0 && busy.idle[decades - 1].gaps == 0) --decades;
  for (size_t k = 0; k < decades; ++k) {
    message.add_idle_gaps(busy.idle[k].gaps);
    message.add_idle_ns(busy.idle[k].ns);
  }
  message.set_late(busy.late);
  message.set_late_ns(busy.late_ns);
  for (const IdleGap& gap : busy.largest)
    for (const uint64_t value : {gap.begin_ns - busy.begin_ns, gap.length_ns,
                                 uint64_t{ids[gap.before]}, uint64_t{ids[gap.after]}})
      message.add_longest_idle(value);
  return message;
}

bool read_device_times(const trace::DeviceTimes& m, const IdMap& signatures, DeviceTime& time) {
  const bool fits = m.placed() > 0 && BusyInterval::has_place(m.begin_ns(), 0) &&
                    BusyInterval::has_place(m.end_ns(), 0) && m.begin_ns() <= m.end_ns() &&
                    m.busy_ns() <= m.end_ns() - m.begin_ns() &&
                    m.idle_gaps_size() == m.idle_ns_size() &&
                    static_cast<size_t>(m.idle_ns_size()) <= BusyTime::kDecades;
  if (!fits) return false;
  u128 idle = 0;
  for (const uint64_t ns : m.idle_ns()) idle += ns;
  if (idle > m.end_ns() - m.begin_ns() - m.busy_ns()) return false;
  BusyTime longest;
  if (!read_longest_idle(m, signatures, longest)) return false;
  time.busy.largest = std::move(longest.largest);
  time.placed = m.placed();
  time.unplaced -= std::min(time.unplaced, m.placed());
  time.kernel_ns = m.kernel_ns();
  time.busy.any = true;
  time.busy.begin_ns = m.begin_ns();
  time.busy.end_ns = m.end_ns();
  time.busy.busy_ns = m.busy_ns();
  for (int k = 0; k < m.idle_ns_size(); ++k)
    time.busy.idle[static_cast<size_t>(k)] = {m.idle_gaps(k), m.idle_ns(k)};
  time.busy.late = m.late();
  time.busy.late_ns = m.late_ns();
  return true;
}

}  // namespace flopinj::reduce
