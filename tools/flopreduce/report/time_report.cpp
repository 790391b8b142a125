
#include "report/build_report.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string kernel_name(const TraceTables& tables, uint32_t signature) {
  if (signature == SignatureTable::kUndefined) return "(lost kernel)";
  return demangle(tables.names[tables.signatures[signature].name]);
}

// A process that starts its recording late, or a clock that jumps, has no such times.
void add_edges(const TraceState& trace, TimeReport::Device& device) {
  const uint64_t start = trace.begin_ns();
  if (!device.wall_ns || start == 0 || device.begin_ns < start) return;
  const uint64_t before = device.begin_ns - start, between = *device.busy_ns + *device.idle_ns;
  if (before > *device.wall_ns || between > *device.wall_ns - before) return;
  device.before_ns = before;
  device.after_ns = *device.wall_ns - before - between;
}

TimeReport::Device device_of(const TraceTables& tables, const Totals& totals, size_t index) {
  const DeviceTime& time = totals.devices[index];
  const Device& device = tables.devices[index];
  TimeReport::Device out;
  out.trace = device.trace;
  out.id = device.id;
  out.name = device.facts.name();
  out.placed = time.placed;
  out.unplaced = time.unplaced;
  out.wall_ns = tables.traces[device.trace].wall_ns();
  if (time.placed == 0) return out;
  out.kernel_ns = time.kernel_ns;
  out.busy_ns = time.busy.busy_ns;
  out.idle_ns = 0;
  for (const auto& decade : time.busy.idle) *out.idle_ns += decade.ns;
  out.begin_ns = time.busy.begin_ns;
  add_edges(tables.traces[device.trace], out);
  out.late = time.busy.late;
  out.late_ns = time.busy.late_ns;
  out.idle = time.busy.idle;
  for (const IdleGap& gap : time.busy.largest)
    out.largest.push_back({gap.begin_ns - time.busy.begin_ns, gap.length_ns,
                           kernel_name(tables, gap.before), kernel_name(tables, gap.after)});
  for (size_t phase = 0; phase < time.flop.size(); ++phase)
    if (const FlopSeries& series = time.flop[phase]; !series.empty())
      out.flop.push_back(
          {totals.phases[phase], series.begin_ns(), series.bin_ns(), series.bins(), false});
  return out;
}

template <typename Value>
void add(std::optional<u128>& sum, const std::optional<Value>& value) {
  if (sum && value)
    add_saturating(*sum, *value);
  else
    sum.reset();
}

}  // namespace

TimeReport build_time_report(const TraceTables& tables, const Totals& totals) {
  TimeReport report;
  report.devices.reserve(tables.traces.size());
  for (size_t i = 0; i < totals.devices.size(); ++i)
    if (totals.devices[i].placed + totals.devices[i].unplaced > 0)
      report.devices.push_back(device_of(tables, totals, i));
  if (!report.devices.empty())
    report.kernel_ns = report.busy_ns = report.idle_ns = report.before_ns = report.after_ns =
        report.wall_ns = u128{0};
  for (const auto& device : report.devices) {
    add(report.kernel_ns, device.kernel_ns);
    add(report.busy_ns, device.busy_ns);
    add(report.idle_ns, device.idle_ns);
    add(report.before_ns, device.before_ns);
    add(report.after_ns, device.after_ns);
    add(report.wall_ns, device.wall_ns);
    report.complete = report.complete && device.unplaced == 0 && device.late == 0;
  }
  for (const auto& trace : tables.traces) {
    if (!trace.own_ns()) continue;
    if (!report.own_ns) report.own_ns = report.own_wall_ns = u128{0};
    add(report.own_wall_ns, trace.real_wall_ns());
    add(report.own_ns, trace.own_ns());
  }
  return report;
}

}  // namespace flopinj::reduce
