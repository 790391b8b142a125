// Range names as PyTorch writes them, and what the formulas say of them.
#pragma once
#include <string>
#include <vector>

#include "analytic/operator_flop.h"
#include "catch.h"

template <>
struct Catch::StringMaker<flopinj::reduce::OperatorFlop> {
  static std::string convert(const flopinj::reduce::OperatorFlop& f) {
    const auto text = [](flopinj::reduce::u128 n) {
      return std::to_string(static_cast<uint64_t>(n));
    };
    return text(f.multiply_adds) + " multiply-adds, " + text(f.arithmetic) + " single, " +
           text(f.uncounted) + " other";
  }
};

namespace flopinj::test {

using reduce::Formula;
using reduce::OperatorFlop;
using reduce::Shape;

inline std::string text(const Shape& shape) {
  std::string s = "[";
  for (const int64_t d : shape) s += (s.size() > 1 ? ", " : "") + std::to_string(d);
  return s + "]";
}

inline std::string range(const std::string& name, const std::vector<Shape>& shapes) {
  std::string s = "aten::" + name + ", sizes = [";
  for (size_t i = 0; i < shapes.size(); ++i) s += (i != 0 ? ", " : "") + text(shapes[i]);
  return s + "]";
}

// What other ranges tell of an operator.
struct Around {
  const Shape* output = nullptr;
  std::string module = {}, gradient = {}, forward = {};
};

inline Formula formula_of(const std::string& range, const Around& around = {}) {
  INFO(range);
  const auto name = reduce::parse_operator_name(range);
  REQUIRE(name);
  const auto module = reduce::parse_operator_name(around.module);
  const auto gradient = reduce::parse_operator_name(around.gradient);
  const auto forward = reduce::parse_operator_name(around.forward);
  return operator_formula(
      *name, {.sizes = name->has_sizes ? &name->sizes : nullptr,
              .settings = name->settings != reduce::OperatorSettings{} ? &name->settings
                          : module                                     ? &module->settings
                                                                       : nullptr,
              .output = around.output,
              .gradient = gradient ? &*gradient : nullptr,
              .forward = forward ? &*forward : nullptr});
}

inline OperatorFlop flop_of(const std::string& range, const Around& around = {}) {
  const Formula formula = formula_of(range, around);
  INFO(range << ": " << formula.why_not);
  REQUIRE(formula.flop);
  return *formula.flop;
}

// Of an operator that does multiply-adds alone.
inline uint64_t macs(const std::string& range, const Around& around = {}) {
  const OperatorFlop flop = flop_of(range, around);
  INFO(range);
  CHECK(flop.arithmetic == 0);
  return static_cast<uint64_t>(flop.multiply_adds);
}

}  // namespace flopinj::test
