#include "activation_layers.h"

namespace trainer {

CUdeviceptr ReluLayer::forward(CUdeviceptr x) {
  const int count = batch_ * spec_.out.size();
  const OperatorRange relu(counter_, "aten::relu", count_forward(), {shape(spec_.out)});
  kernels_.relu_forward.launch(stream_, one_per_item(count), count, x, output_.address());
  return output_.address();
}

CUdeviceptr ReluLayer::backward(CUdeviceptr x, CUdeviceptr dy) {
  if (!spec_.input_gradient) return 0;
  const int count = batch_ * spec_.in.size();
  const NodeRange node(counter_, "ReluBackward0", sequence_, shape(spec_.out));
  const OperatorRange threshold(counter_, "aten::threshold_backward", OperatorRange::kNoSequence,
                                {shape(spec_.out), shape(spec_.in), {}});
  kernels_.relu_backward.launch(stream_, one_per_item(count), count, x, dy,
                                input_gradient_.address());
  return input_gradient_.address();
}

CUdeviceptr AveragePoolLayer::forward(CUdeviceptr x) {
  const Shape& out = spec_.out;
  const OperatorRange pool(counter_, "aten::avg_pool2d", count_forward(),
                           {shape(spec_.in), {}, {}, {}, {}, {}, {}});
  kernels_.average_pool_forward.launch(stream_, one_per_item(batch_ * out.size()),
                                       batch_ * out.channels, out.height, out.width, spec_.window,
                                       scale(), x, output_.address());
  return output_.address();
}

CUdeviceptr AveragePoolLayer::backward(CUdeviceptr, CUdeviceptr dy) {
  if (!spec_.input_gradient) return 0;
  const Shape &in = spec_.in, &out = spec_.out;
  const NodeRange node(counter_, "AvgPool2DBackward0", sequence_, shape(out));
  const OperatorRange backward(counter_, "aten::avg_pool2d_backward", OperatorRange::kNoSequence,
                               {shape(out), shape(in), {}, {}, {}, {}, {}, {}});
  kernels_.average_pool_backward.launch(stream_, one_per_item(batch_ * in.size()),
                                        batch_ * out.channels, out.height, out.width, spec_.window,
                                        scale(), dy, input_gradient_.address());
  return input_gradient_.address();
}

}  // namespace trainer
