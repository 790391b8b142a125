#include "projection/projection.h"

#include <algorithm>

namespace flopinj::reduce {

const std::array<ReferenceUtilization, 10> kReferenceUtilizations = {{
    {0.30, 0.30, "assumed, large language models", "Sevilla and others 2022, method 2"},
    {0.40, 0.40, "assumed, other networks", "Sevilla and others 2022, method 2"},
    {0.30, 0.75, "convolutional networks on one P100",
     "Hobbhahn 2021, How to measure FLOP/s for Neural Networks empirically?"},
    {0.04, 0.04, "MobileNetV2, EfficientNet-B0 on one P100",
     "Hobbhahn 2021, How to measure FLOP/s for Neural Networks empirically?"},
    {0.33, 0.33, "assumed, several GPUs", "Amodei and Hernandez 2018, AI and Compute"},
    {0.25, 0.25, "GPT-3", "Patterson and others 2021, figure 5"},
    {0.39, 0.39, "GShard", "Patterson and others 2021, figure 5"},
    {0.44, 0.52, "language models on GPU clusters", "Narayanan and others 2021, Megatron-LM"},
    {0.565, 0.565, "LaMDA", "Thoppilan and others 2022, LaMDA"},
    {0.62, 0.62, "GSPMD at scale", "Xu and others 2021, GSPMD"},
}};

double training_seconds(double flop, double devices, double peak_flop_per_s, double utilization) {
  return flop / (devices * peak_flop_per_s * utilization);
}

double factor_between(double a, double b) { return std::max(a, b) / std::min(a, b); }

Inference inference(double flop_per_example, double peak_flop_per_s, double utilization) {
  const double seconds = flop_per_example / (peak_flop_per_s * utilization);
  return {seconds, 1 / seconds};
}

}  // namespace flopinj::reduce
