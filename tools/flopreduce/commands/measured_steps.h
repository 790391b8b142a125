// What a recording of some training steps says of one: the basis of a projection.
#pragma once
#include <optional>
#include <string>

#include "report/report.h"

namespace flopinj::reduce {

struct MeasuredSteps {
  double flop = 0;                      // of a step, as executed, all devices together
  std::string steps_text;               // "3 steps in the traces"
  double devices = 1;                   // that had launches
  std::optional<double> gpu_s, wall_s;  // of a step, on one device; nothing where not known
  // Of one device, for the mix of precisions that ran: FLOP / the least time that the peaks allow.
  std::optional<double> peak;
  std::string peak_text;
  // Over wall time, or over GPU time where wall time is not known.
  std::optional<double> utilization;
  std::string utilization_text;

  const std::optional<double>& step_s() const { return wall_s ? wall_s : gpu_s; }
};

// Nothing where launches are unmeasured, which was said.
std::optional<MeasuredSteps> measure_steps(const Report& report, double steps);

}  // namespace flopinj::reduce
