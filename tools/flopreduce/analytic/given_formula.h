// A formula that the user gives: a sum of products of whole numbers and sizes, or one of the tables
// with the places of its operands. There are no functions and no conditions: who needs these gives
// the number in the program (flopinj.formula).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analytic/operator_flop.h"

namespace flopinj::reduce {

class GivenFormula {
 public:
  enum class Of : uint8_t { kOperator, kRange, kKernel };

  // FLOP of one call, or of one launch of a kernel, where a multiply-add counts two:
  //   2*size[0][-2]*size[0][-1]*size[1][-1] + size[2]    sizes of arguments, from 0; -1: the last
  //                                                      dimension; size[2]: the product of all
  //   2*64*grid[0]*block[0]                              of a kernel, whose launch is all it shows
  //   aten::linear(0, 2)                                 the formula of these arguments
  // Nothing, and why in `error`, where the text is none.
  static std::optional<GivenFormula> parse(std::string_view text, Of of, std::string& error);

  Formula of_call(const OperatorCall& call) const;
  Formula of_launch(const std::array<uint32_t, 3>& grid,
                    const std::array<uint32_t, 3>& block) const;

  std::string source{};  // "my.formulas:3"

 private:
  friend class FormulaParser;
  struct Factor {
    uint64_t number = 1;  // where there is no argument
    std::optional<size_t> argument{};
    std::optional<int64_t> dimension{};  // below 0: from the last one; without: all together
  };
  using Product = std::vector<Factor>;

  std::vector<Product> sum_;
  std::string like_;            // a function with a formula; empty: the sum counts
  std::vector<size_t> places_;  // of its operands
};

// Bounds of a formula: what goes beyond is an error.
inline constexpr size_t kMaxFormulaParts = 256;  // terms, factors, operands
inline constexpr size_t kMaxFormulaBytes = 4096;

}  // namespace flopinj::reduce
