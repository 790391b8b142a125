// Gates: conditions on a report's figures that a CI job fails by.
//
//     gate       = and { ("or" | "OR" | "||") and }
//     and        = term { ("and" | "AND" | "&&") term }
//     term       = "(" gate ")" | operand ("<" | "<=" | ">" | ">=" | "==" | "!=") operand
//     operand    = number | figure | name
//     number     = decimal, with an exponent or an SI prefix, per cent, or with the unit of the
//                  figure beside it: 2.1, 1e12, 350G, 30%, 3ms, 5 GB, 200TFLOP/s
//     figure     = part { "." part }      part = word | "quoted" | 'quoted'
//     name       = word, of a figure that is one of several names: verdict == outside
//
// A word is of letters, digits, "_" and "-". A figure is a path into the JSON report (figures.h).
// A gate fails when it is true, and also when a figure that decides it is not known: it never
// passes in silence. A bound (at least, at most) decides what it can. Integers are compared to
// their last digit, 350G and 1e12 too; all else as floating-point numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gates/units.h"
#include "report/figure.h"
#include "report/report.h"

namespace flopinj::reduce {

using FigurePath = std::vector<std::string>;

// What a name stands for in a report.
struct FoundFigure {
  Figure figure = {};
  std::string wrong = {};      // there is no such name, or it is no number: what to do. Else empty
  bool share = false;          // 1 is 100 %
  const Unit* unit = nullptr;  // of its number; null: none
  // It is one of these names, and `figure` its place among them.
  std::span<const std::string_view> names = {};

  // Not a bound, nor unknown.
  bool has_value() const { return figure.known() && !figure.bound(); }
};
// "= 1.69", ">= 0.2"; empty where nothing is known.
std::string known_text(const FoundFigure& found);
// The place among these names of the one that an operand is; nothing where it is none of them.
std::optional<size_t> place_among(std::span<const std::string_view> names,
                                  const FigurePath& operand);
// What to write beside a figure that is one of these names.
std::string names_wanted(const std::string& figure, std::span<const std::string_view> names);
using FigureLookup = std::function<FoundFigure(const FigurePath&)>;

class Gate {
 public:
  // False with `error`: what was expected, the text, and below it a caret, on three lines.
  static bool parse(std::string_view text, Gate& gate, std::string& error);
  GateResult evaluate(const FigureLookup& lookup) const;
  const std::string& text() const { return text_; }
  // The figures on both sides of each comparison; without parts where a number is there.
  struct Sides {
    FigurePath left, right;
    bool equality = false;  // "==" or "!="
  };
  std::vector<Sides> comparisons() const;

 private:
  friend class GateParser;
  friend class GateEvaluation;
  enum class Kind : uint8_t {
    kOr,
    kAnd,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kEqual,
    kNotEqual
  };
  struct Operand {
    Figure number;      // an integer of at least 0 to its last digit
    FigurePath figure;  // empty for a number
    std::string text;
    const Unit* unit = nullptr;  // that a number has; null: none
    bool percent = false;        // its number is 30 / 100
  };
  struct Node {
    Kind kind{};
    size_t left = 0, right = 0;  // of nodes_ for kOr and kAnd, of operands_ else
  };
  std::string text_;
  std::vector<Node> nodes_;  // the last is the whole gate
  std::vector<Operand> operands_;
};

}  // namespace flopinj::reduce
