#include "layer.h"

#include "activation_layers.h"
#include "linear_layers.h"

namespace trainer {

Layer::Layer(const Stream& stream, const Kernels& kernels, const LayerSpec& spec, int batch)
    : stream_(stream),
      kernels_(kernels),
      spec_(spec),
      batch_(batch),
      output_(stream.api(), static_cast<size_t>(batch * spec.out.size())),
      input_gradient_(stream.api(),
                      spec.input_gradient ? static_cast<size_t>(batch * spec.in.size()) : 1),
      range_name_("layer:" + spec.name) {}

std::unique_ptr<Layer> make_layer(const Stream& stream, const Kernels& kernels,
                                  const LayerSpec& spec, int batch) {
  switch (spec.kind) {
    case LayerKind::kDense:
      return std::make_unique<DenseLayer>(stream, kernels, spec, batch);
    case LayerKind::kConv2d:
      return std::make_unique<Conv2dLayer>(stream, kernels, spec, batch);
    case LayerKind::kRelu:
      return std::make_unique<ReluLayer>(stream, kernels, spec, batch);
    case LayerKind::kAveragePool:
      return std::make_unique<AveragePoolLayer>(stream, kernels, spec, batch);
  }
  return nullptr;
}

}  // namespace trainer
