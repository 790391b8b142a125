#include "gpt/cross_entropy.h"

namespace trainer {

CrossEntropy::CrossEntropy(const Place& place, float scale)
    : Operator(place),
      classes_(place.sizes.vocabulary),
      scale_(scale),
      log_probabilities_(place.stream.api(), static_cast<size_t>(tokens() * classes_)),
      gradient_(place.stream.api(), static_cast<size_t>(tokens() * classes_)),
      loss_(place.stream.api(), 1) {}

void CrossEntropy::forward(CUdeviceptr logits, CUdeviceptr labels) {
  const Sizes all = {tokens(), classes_}, each = {tokens()};
  number();  // the logits' view
  softmax_ = number();
  likelihood_ = number();
  const auto loss = range("aten::cross_entropy_loss", softmax_, {all, each, {}, {}, {}, {}});
  {
    const auto softmax = range("aten::log_softmax", softmax_, {all, {}, {}});
    const auto inner = range("aten::_log_softmax", softmax_, {all, {}, {}});
    kernels().log_softmax.launch(stream(), warp_per_row(tokens()), classes_, logits,
                                 log_probabilities_.address());
  }
  const auto nd = range("aten::nll_loss_nd", likelihood_, {all, each, {}, {}, {}});
  const auto nll = range("aten::nll_loss", likelihood_, {all, each, {}, {}, {}});
  const auto forward = range("aten::nll_loss_forward", likelihood_, {all, each, {}, {}, {}});
  kernels().nll_loss.launch(stream(), {1, 1, 32, 1, 0}, tokens(), classes_, scale_, labels,
                            log_probabilities_.address(), loss_.address());
}

void CrossEntropy::backward(CUdeviceptr labels, CUdeviceptr dlogits) {
  const Sizes all = {tokens(), classes_}, each = {tokens()};
  {
    const auto backward = node("NllLossBackward0", likelihood_, {});
    const auto nll = range("aten::nll_loss_backward", {{}, all, each, {}, {}, {}, {}});
    const int count = tokens() * classes_;
    kernels().nll_loss_backward.launch(stream(), one_per_item(count), count, classes_, scale_,
                                       labels, gradient_.address());
  }
  const auto backward = node("LogSoftmaxBackward0", softmax_, all);
  const auto data = range("aten::_log_softmax_backward_data", {all, all, {}, {}});
  kernels().log_softmax_backward.launch(stream(), warp_per_row(tokens()), classes_,
                                        log_probabilities_.address(), gradient_.address(), dlogits);
}

}  // namespace trainer
