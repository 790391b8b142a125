#include "analytic/given_formula.h"

#include <charconv>

#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr const char* kNoSuchSize = "its formula asks for sizes that the range's name has not";

bool is_part_of_name(char c) { return is_alnum(c) || c == '_' || c == ':'; }

}  // namespace

class FormulaParser {
 public:
  FormulaParser(std::string_view text, GivenFormula::Of of) : rest_(text), of_(of) {}

  std::optional<GivenFormula> parse(std::string& error) {
    GivenFormula formula;
    skip_spaces();
    const bool read = starts_with_function() ? like(formula) : sum(formula);
    if (read && !rest_.empty()) fail("'+' or '*' is missing before");
    if (error_.empty()) return formula;
    error = std::move(error_);
    return std::nullopt;
  }

 private:
  bool fail(std::string_view what) {
    if (!error_.empty()) return false;
    error_ = std::string(what);
    error_ += rest_.empty() ? " the end" : " '" + printable(cut(rest_, 40)) + "'";
    return false;
  }
  void skip_spaces() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t'))
      rest_.remove_prefix(1);
  }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    skip_spaces();
    return true;
  }
  std::string_view name() {
    size_t end = 0;
    while (end < rest_.size() && is_part_of_name(rest_[end])) ++end;
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end);
    skip_spaces();
    return found;
  }
  template <typename Number>
  bool whole(Number& to, const char* what) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), to);
    if (error != std::errc{}) return fail(what);
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    if (!rest_.empty() && (rest_.front() == '.' || is_part_of_name(rest_.front())))
      return fail("a number is a whole one, and is not followed by");
    skip_spaces();
    return true;
  }
  bool place(size_t& to) {
    uint16_t number = 0;
    if (!whole(number, "a whole number from 0 on, as a place is, is not")) return false;
    to = number;
    return true;
  }

  bool starts_with_function() const {
    size_t end = 0;
    while (end < rest_.size() && is_part_of_name(rest_[end])) ++end;
    return rest_.substr(0, end).find("::") != rest_.npos;
  }
  // "aten::linear(0, 2)"
  bool like(GivenFormula& formula) {
    if (of_ != GivenFormula::Of::kOperator) return fail("only operators have operands, for");
    const std::string_view all = rest_;
    formula.like_ = name();
    if (!has_operator_formula(formula.like_)) {
      rest_ = all;
      return fail("there is no formula of the name");
    }
    if (!take('(')) return fail("'(' and the places of operands are missing before");
    do {
      if (formula.places_.size() == kMaxFormulaParts) return fail("too many operands before");
      if (!place(formula.places_.emplace_back())) return false;
    } while (take(','));
    return take(')') || fail("')' is missing before");
  }
  bool sum(GivenFormula& formula) {
    do {
      GivenFormula::Product& product = formula.sum_.emplace_back();
      do {
        if (++parts_ > kMaxFormulaParts) return fail("too many terms before");
        if (!factor(product.emplace_back())) return false;
      } while (take('*'));
    } while (take('+'));
    return true;
  }
  bool factor(GivenFormula::Factor& to) {
    if (!rest_.empty() && is_digit(rest_.front()))
      return whole(to.number, "a number is larger than 2^64:");
    const std::string_view all = rest_;
    const std::string_view word = name();
    const bool kernel = of_ == GivenFormula::Of::kKernel;
    if (kernel && (word == "grid" || word == "block")) {
      to.argument = word == "block";
      return dimension(to) &&
             (in_three(*to.dimension) || fail("grids have 0, 1 and 2, not before"));
    }
    if (of_ == GivenFormula::Of::kOperator && word == "size") {
      size_t argument = 0;
      if (!take('[') || !place(argument) || !take(']'))
        return fail("size[ARGUMENT] or size[ARGUMENT][DIMENSION] is meant before");
      to.argument = argument;
      return rest_.empty() || rest_.front() != '[' || dimension(to);
    }
    rest_ = all;
    return fail(kernel                               ? "a whole number, grid[I] or block[I] is not"
                : of_ == GivenFormula::Of::kOperator ? "a whole number or a size[I][J] is not"
                                                     : "a range has whole numbers only, not");
  }
  bool dimension(GivenFormula::Factor& to) {
    int16_t number = 0;
    if (!take('[') || !whole(number, "a whole number, as a dimension is, is not") || !take(']'))
      return fail("[DIMENSION] is meant before");
    to.dimension = number;
    return true;
  }
  static bool in_three(int64_t dimension) { return dimension >= 0 && dimension < 3; }

  std::string_view rest_;
  GivenFormula::Of of_;
  size_t parts_ = 0;
  std::string error_;
};

std::optional<GivenFormula> GivenFormula::parse(std::string_view text, Of of, std::string& error) {
  if (text.size() > kMaxFormulaBytes) {
    error = "the formula is longer than " + std::to_string(kMaxFormulaBytes) + " bytes";
    return std::nullopt;
  }
  return FormulaParser(text, of).parse(error);
}

Formula GivenFormula::of_call(const OperatorCall& call) const {
  if (!like_.empty()) {
    std::vector<Shape> sizes;
    for (const size_t place : places_) {
      if (!call.has(place)) return Formula::none(kNoSuchSize);
      sizes.push_back(call.shape(place));
    }
    OperatorName name;
    name.name = like_;
    name.has_sizes = true;
    return operator_formula(name, {.sizes = &sizes, .settings = call.settings});
  }
  OperatorFlop flop;
  for (const Product& product : sum_) {
    u128 all = 1;
    for (const Factor& factor : product) {
      u128 value = factor.number;
      if (factor.argument) {
        if (!call.has(*factor.argument)) return Formula::none(kNoSuchSize);
        const Shape& shape = call.shape(*factor.argument);
        value = elements(shape);
        if (factor.dimension) {
          const auto dimensions = static_cast<int64_t>(shape.size());
          const int64_t at = *factor.dimension + (*factor.dimension < 0 ? dimensions : 0);
          if (at < 0 || at >= dimensions) return Formula::none(kNoSuchSize);
          value = static_cast<u128>(shape[static_cast<size_t>(at)]);
        }
      }
      all = times_saturating(all, value);
    }
    add_saturating(flop.arithmetic, all);
  }
  return Formula::of(flop);
}

Formula GivenFormula::of_launch(const std::array<uint32_t, 3>& grid,
                                const std::array<uint32_t, 3>& block) const {
  const std::vector<Shape> sizes = {{grid.begin(), grid.end()}, {block.begin(), block.end()}};
  return of_call({.sizes = &sizes});
}

}  // namespace flopinj::reduce
