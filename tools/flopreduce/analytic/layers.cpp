#include "analytic/layers.h"

#include <initializer_list>

namespace flopinj::reduce {
namespace {

u128 product(std::initializer_list<u128> factors) {
  u128 result = 1;
  for (const u128 factor : factors)
    if (__builtin_mul_overflow(result, factor, &result)) return kU128Max;
  return result;
}

u128 sum(std::initializer_list<u128> terms) {
  u128 result = 0;
  for (const u128 term : terms) add_saturating(result, term);
  return result;
}

}  // namespace

u128 fully_connected_flop(uint64_t inputs, uint64_t outputs) {
  return product({2, inputs, outputs});
}

u128 feed_forward_flop(uint64_t width, uint64_t hidden) { return product({2, 2, width, hidden}); }

u128 lstm_step_flop(uint64_t inputs, uint64_t units) {
  return product({4, 2, sum({inputs, units}), units});
}

u128 gru_step_flop(uint64_t inputs, uint64_t units) {
  return product({3, 2, sum({inputs, units}), units});
}

u128 attention_flop(const AttentionLayer& a) {
  const u128 projections = product({a.input, sum({a.key, a.key, a.value})});
  const u128 attention = product({a.sequence, sum({a.key, a.value})});
  return product({2, a.heads, sum({projections, attention, product({a.value, a.output})})});
}

u128 convolution_flop(uint64_t output_pixels, uint64_t input_channels, uint64_t kernel_elements,
                      uint64_t output_channels) {
  return product({2, output_pixels, input_channels, kernel_elements, output_channels});
}

uint64_t convolution_output(uint64_t size, uint64_t kernel, uint64_t padding, uint64_t stride) {
  const u128 padded = sum({size, padding, padding});
  if (stride == 0 || kernel > padded) return 0;
  const u128 steps = (padded - kernel) / stride + 1;
  return steps > UINT64_MAX ? 0 : static_cast<uint64_t>(steps);
}

}  // namespace flopinj::reduce
