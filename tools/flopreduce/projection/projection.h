// What a training run or an inference costs, worked out from numbers. No trace is involved.
//
// Sources of the two methods and of the reference utilizations: J. Sevilla and others, "Estimating
// Training Compute of Deep Learning Models" (2022).
#pragma once
#include <array>
#include <string_view>

namespace flopinj::reduce {

// Method 1: operations. FLOP = forward FLOP x (1 + backward ratio) x examples x epochs.
struct TrainingByOperations {
  double forward_flop = 0;        // of one example; of one time step of it, for a recurrent network
  double backward_ratio = 2;      // backward / forward FLOP
  double recurrent_steps = 1;     // time steps of one example, on average: they multiply
  double non_recurrent_flop = 0;  // forward FLOP of one example outside its time steps
  double examples = 0;            // in one epoch
  double epochs = 1;

  double flop() const {
    return (forward_flop * recurrent_steps + non_recurrent_flop) * (1 + backward_ratio) * examples *
           epochs;
  }
};

// Method 1 from a recording: FLOP of one step, forward and backward as executed, x steps.
struct TrainingBySteps {
  double flop_per_step = 0;
  double steps = 0;

  double flop() const { return flop_per_step * steps; }
};

// Method 2: device time. FLOP = seconds x devices x peak x utilization.
struct TrainingByTime {
  double seconds = 0;  // of every device
  double devices = 1;
  double peak_flop_per_s = 0;  // of one device
  double utilization = 0;      // above 0, at most 1

  double flop() const { return seconds * devices * peak_flop_per_s * utilization; }
};

// How long `flop` take on devices that reach `utilization` of their peak.
double training_seconds(double flop, double devices, double peak_flop_per_s, double utilization);

// How far apart two estimates are: larger / smaller. Both must be above 0.
double factor_between(double a, double b);

struct Inference {
  double seconds = 0;  // of one example
  double examples_per_second = 0;
};
Inference inference(double flop_per_example, double peak_flop_per_s, double utilization);

// Utilizations that others assumed or reported, to be shown beside a measured one.
struct ReferenceUtilization {
  double low, high;  // as a share of peak
  std::string_view of;
  std::string_view source;
};
extern const std::array<ReferenceUtilization, 10> kReferenceUtilizations;

// What method 2 assumes where nothing is measured.
inline constexpr double kAssumedLanguage = 0.30;
inline constexpr double kAssumedOther = 0.40;

}  // namespace flopinj::reduce
