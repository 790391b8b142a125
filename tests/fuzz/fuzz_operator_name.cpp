// Any bytes as a range name: read as an operator, and its formula worked out.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "analytic/operator_flop.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flopinj::reduce;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto name = parse_operator_name(text);
  if (!name) return 0;
  if (name->sizes.size() > kMaxArguments || (!name->has_sizes && !name->sizes.empty()))
    std::abort();
  for (const Shape& shape : name->sizes) {
    if (shape.size() > kMaxDimensions) std::abort();
    for (const int64_t dimension : shape)
      if (dimension < 0) std::abort();
  }
  // Sizes stand for their own gradient's too, and settings for those of the module around.
  const Shape* output = name->sizes.empty() ? nullptr : &name->sizes.back();
  for (const Shape* known : {static_cast<const Shape*>(nullptr), output}) {
    const Formula formula = operator_formula(*name, {&name->sizes, &name->settings, known});
    if (formula.flop.has_value() == (*formula.why_not != '\0')) std::abort();
    if (formula.flop && formula.flop->flop(1) > formula.flop->flop(2)) std::abort();
  }
  return 0;
}
