#include "commands/measured_steps.h"

#include <algorithm>

#include "commands/projection_arguments.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

double devices_of(const Report& report) {
  const auto n = std::count_if(report.devices.begin(), report.devices.end(),
                               [](const auto& device) { return device.ledger.launches > 0; });
  return static_cast<double>(std::max<ptrdiff_t>(1, n));
}

void add_peak(const Report& report, MeasuredSteps& m) {
  const Work& total = report.total;
  if (total.roof.no_peak > 0 || total.roof.compute_ns <= 0 || total.flop == 0) return;
  m.peak = static_cast<double>(total.flop) / total.roof.compute_ns * 1e9;
  std::string names;
  for (const auto& device : report.utilization.devices)
    names += (names.empty() ? "" : ", ") + printable(cut(device.name, 100));
  m.peak_text = "of the precisions that ran, on " + names;
}

void add_utilization(const Report& report, MeasuredSteps& m) {
  const auto& methods = report.utilization.methods;
  const auto executed = std::find_if(methods.begin(), methods.end(),
                                     [](const auto& method) { return method.name == "executed"; });
  if (executed == methods.end()) return;
  const bool wall = executed->wall.known();
  m.utilization = (wall ? executed->wall : executed->gpu_time).number();
  m.utilization_text = std::string("measured, over ") + (wall ? "wall" : "GPU") + " time";
}

}  // namespace

std::optional<MeasuredSteps> measure_steps(const Report& report, double steps) {
  MeasuredSteps m;
  const auto flop = share_of(report.total, steps, "total");
  if (!flop) return std::nullopt;
  m.flop = *flop;
  m.steps_text = plain(steps) + " steps in the traces";
  if (report.simulated.value_or(false)) m.steps_text += " (simulated)";
  m.devices = devices_of(report);
  const auto on_one = [&](double ns) { return ns / 1e9 / m.devices / steps; };
  if (report.total.launches > 0 && report.total.time.unknown == 0)
    m.gpu_s = on_one(static_cast<double>(report.total.time.ns));
  if (const auto wall = report.utilization.wall_ns.number()) m.wall_s = on_one(*wall);
  add_peak(report, m);
  add_utilization(report, m);
  return m;
}

}  // namespace flopinj::reduce
