// Formulas of the user's own: --formulas FILE, and numbers that the program gives.
#pragma once
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analytic/given_formula.h"

namespace flopinj::reduce {

// Ranges that flopinj.formula makes: what begins so has the FLOP of its calls as the range's number
// of that name.
inline constexpr std::string_view kFormulaRange = "formula::";
inline constexpr std::string_view kFormulaNumber = "flop";

// Bounds of such a file: what goes beyond is an error.
inline constexpr size_t kMaxFormulas = 4096;
inline constexpr size_t kMaxFormulaFileBytes = 1U << 20;

class GivenFormulas {
 public:
  // Lines "SUBJECT PATTERN = FORMULA", of which the first that fits counts:
  //   operator my_ext::fused_mlp* = 2*size[0]*size[1][-1]
  //   range attention*            = 137438953472
  //   kernel *flash_fwd_kernel*   = 2*64*64*grid[0]
  // SUBJECT: an operator by its name, or an autograd node by its own without its number; an NVTX
  // range by all of its name; a kernel by its mangled or its demangled name. '*' in a PATTERN is
  // any text. Empty lines and lines that begin with '#' are passed over. An error in one line,
  // or nothing; all of the file or nothing is added.
  std::optional<std::string> add_file(const std::string& name, std::string_view text);

  // Null where none fits. They live as long as this object, and are not copied with it.
  const GivenFormula* find(GivenFormula::Of of, std::string_view name) const;
  bool any() const { return !lines_.empty(); }
  std::vector<const GivenFormula*> all() const;

 private:
  struct Line {
    GivenFormula::Of of;
    std::string pattern;
    GivenFormula formula;
  };
  std::deque<Line> lines_;
};

// Whether '*' in the pattern can stand for something so that it is the text.
bool fits_pattern(std::string_view pattern, std::string_view text);

}  // namespace flopinj::reduce
