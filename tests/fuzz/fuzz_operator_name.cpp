// Any bytes as a range name, and after a line end as that of the module around it: read as an
// operator, and its formula worked out.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "analytic/operator_flop.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flopinj::reduce;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = text.find('\n');
  const auto name = parse_operator_name(text.substr(0, line));
  const auto module = line == text.npos ? std::nullopt : parse_operator_name(text.substr(line + 1));
  if (!name) return 0;
  if (name->sizes.size() > kMaxArguments || (!name->has_sizes && !name->sizes.empty()))
    std::abort();
  for (const Shape& shape : name->sizes) {
    if (shape.size() > kMaxDimensions) std::abort();
    for (const int64_t dimension : shape)
      if (dimension < 0) std::abort();
  }
  const OperatorSettings* settings = module ? &module->settings : &name->settings;
  // Sizes stand for their own result's too, and a name for its own gradient's.
  const Shape* output = name->sizes.empty() ? nullptr : &name->sizes.back();
  for (const Shape* known : {static_cast<const Shape*>(nullptr), output}) {
    const Formula formula = operator_formula(*name, {.sizes = &name->sizes,
                                                     .settings = settings,
                                                     .output = known,
                                                     .gradient = known ? &*name : nullptr,
                                                     .forward = known ? &*name : nullptr});
    if (formula.flop.has_value() == (*formula.why_not != '\0')) std::abort();
    if (formula.flop && formula.flop->flop(1) > formula.flop->flop(2)) std::abort();
  }
  return 0;
}
