#include "linear_layers.h"

#include <cmath>

namespace trainer {

LinearLayer::LinearLayer(const Stream& stream, const Kernels& kernels, const LayerSpec& spec,
                         int batch, int inputs_per_output)
    : Layer(stream, kernels, spec, batch),
      inputs_per_output_(inputs_per_output),
      parameters_{
          Parameter(stream.api(), static_cast<size_t>(inputs_per_output * spec.out.channels)),
          Parameter(stream.api(), static_cast<size_t>(spec.out.channels))} {}

void LinearLayer::initialize(std::mt19937_64& random) {
  const float limit = std::sqrt(6.0f / static_cast<float>(inputs_per_output_));
  std::uniform_real_distribution<float> uniform(-limit, limit);
  std::vector<float> weights(weight().value.size());
  for (float& value : weights) value = uniform(random);
  weight().value.upload(stream_, weights);
  bias().value.clear(stream_);
  for (Parameter& parameter : parameters_) {
    parameter.gradient.clear(stream_);
    parameter.velocity.clear(stream_);
  }
  stream_.synchronize();  // `weights` ends here
}

void LinearLayer::bias_gradient(CUdeviceptr dy) {
  const int channels = spec_.out.channels;
  kernels_.bias_gradient.launch(stream_, one_per_item(channels), batch_, channels,
                                spec_.out.pixels(), dy, bias().gradient.address());
}

DenseLayer::DenseLayer(const Stream& stream, const Kernels& kernels, const LayerSpec& spec,
                       int batch)
    : LinearLayer(stream, kernels, spec, batch, spec.in.size()) {}

CUdeviceptr DenseLayer::forward(CUdeviceptr x) {
  const int in = spec_.in.size(), out = spec_.out.size();
  const uint64_t sequence = count_forward();
  const OperatorRange linear(counter_, "aten::linear", sequence, {{batch_, in}, {out, in}, {out}});
  const OperatorRange addmm(counter_, "aten::addmm", sequence,
                            {{out}, {batch_, in}, {in, out}, {}, {}});
  kernels_.dense_forward.launch(stream_, one_per_cell(out, threads_for(batch_)), batch_, in, out, x,
                                weight().value.address(), bias().value.address(),
                                output_.address());
  return output_.address();
}

CUdeviceptr DenseLayer::backward(CUdeviceptr x, CUdeviceptr dy) {
  const int in = spec_.in.size(), out = spec_.out.size();
  NodeRange node(counter_, "AddmmBackward0", sequence_, {batch_, out});
  if (spec_.input_gradient) {
    const OperatorRange mm(counter_, "aten::mm", OperatorRange::kNoSequence,
                           {{batch_, out}, {out, in}});
    kernels_.dense_input_gradient.launch(stream_, one_per_cell(in, threads_for(batch_)), batch_, in,
                                         out, dy, weight().value.address(),
                                         input_gradient_.address());
  }
  {
    const OperatorRange mm(counter_, "aten::mm", OperatorRange::kNoSequence,
                           {{out, batch_}, {batch_, in}});
    kernels_.dense_weight_gradient.launch(stream_, one_per_cell(in, threads_for(out)), batch_, in,
                                          out, x, dy, weight().gradient.address());
  }
  node.end_node();
  const OperatorRange sum(counter_, "aten::sum", OperatorRange::kNoSequence,
                          {{batch_, out}, {}, {}, {}});
  bias_gradient(dy);
  return spec_.input_gradient ? input_gradient_.address() : 0;
}

Conv2dLayer::Conv2dLayer(const Stream& stream, const Kernels& kernels, const LayerSpec& spec,
                         int batch)
    : LinearLayer(stream, kernels, spec, batch, spec.in.channels * spec.window * spec.window) {}

CUdeviceptr Conv2dLayer::forward(CUdeviceptr x) {
  const Shape &in = spec_.in, &out = spec_.out;
  const OperatorRange::Sizes sizes = {shape(in), weight_shape(), {out.channels}, {}, {}, {}, {}};
  const uint64_t sequence = count_forward();
  const OperatorRange conv2d(counter_, "aten::conv2d", sequence, sizes);
  const OperatorRange convolution(counter_, "aten::convolution", sequence, sizes);
  kernels_.conv2d_forward.launch(
      stream_, one_per_item(batch_ * out.pixels() * threads_for(out.channels)), batch_, in.channels,
      in.height, in.width, out.channels, spec_.window, x, weight().value.address(),
      bias().value.address(), output_.address());
  return output_.address();
}

CUdeviceptr Conv2dLayer::backward(CUdeviceptr x, CUdeviceptr dy) {
  const Shape &in = spec_.in, &out = spec_.out;
  const NodeRange node(counter_, "ConvolutionBackward0", sequence_, shape(out));
  const OperatorRange backward(
      counter_, "aten::convolution_backward", OperatorRange::kNoSequence,
      {shape(out), shape(in), weight_shape(), {}, {}, {}, {}, {}, {}, {}, {}});
  const int weights = in.channels * spec_.window * spec_.window;
  kernels_.conv2d_weight_gradient.launch(stream_, one_per_item(weights * threads_for(out.channels)),
                                         batch_, in.channels, in.height, in.width, out.channels,
                                         spec_.window, x, dy, weight().gradient.address());
  bias_gradient(dy);
  if (!spec_.input_gradient) return 0;
  kernels_.conv2d_input_gradient.launch(
      stream_, one_per_item(batch_ * in.pixels() * threads_for(in.channels)), batch_, in.channels,
      in.height, in.width, out.channels, spec_.window, dy, weight().value.address(),
      input_gradient_.address());
  return input_gradient_.address();
}

}  // namespace trainer
