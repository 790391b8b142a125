#include "gates/gate.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "support/si_number.h"
#include "support/text.h"

namespace flopinj::reduce {

// A recursive descent over the text; nesting and length are bounded.
class GateParser {
 public:
  GateParser(std::string_view text, Gate& gate) : text_(text), gate_(gate) {}

  bool parse() {
    if (text_.size() > kMaxLength) return fail("a gate is at most 4096 characters long");
    size_t root = 0;
    if (!any_of(root, 0)) return false;
    skip_space();
    if (at_ == text_.size()) return true;
    if (number_before_ && text_[at_] == ',')
      return fail("a number has a point for its fraction, and no comma: 0.5");
    return fail("expected 'and', 'or' or the end" + (number_before_ ? kUnits : std::string()));
  }
  std::string error() const {
    constexpr size_t kAround = 60;  // of a long text, what is near the place
    const size_t from = at_ > kAround ? at_ - kAround : 0;
    const std::string before = printable(text_.substr(from, at_ - from));
    const std::string after = printable(text_.substr(at_, kAround));
    return message_ + "\n    " + before + after + "\n    " +
           std::string(display_width(before), ' ') + "^";
  }

 private:
  static constexpr size_t kMaxLength = 4096;
  static constexpr int kMaxDepth = 100;
  static inline const std::string kUnits =
      "; a number may have %, k, M, G, T, or the unit of its figure: 30%, 1.5TFLOP, 3ms, 5GB";

  bool fail(std::string message) {
    message_ = std::move(message);
    return false;
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  }
  // Takes a symbol, or a whole word.
  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    const size_t end = at_ + token.size();
    if (is_word(token[0]) && end < text_.size() && (is_word(text_[end]) || text_[end] == '.'))
      return false;
    at_ = end;
    return true;
  }
  size_t add(Gate::Kind kind, size_t left, size_t right) {
    gate_.nodes_.push_back({kind, left, right});
    return gate_.nodes_.size() - 1;
  }

  bool any_of(size_t& node, int depth) {
    if (!all_of(node, depth)) return false;
    while (take("or") || take("OR") || take("||")) {
      size_t right = 0;
      if (!all_of(right, depth)) return false;
      node = add(Gate::Kind::kOr, node, right);
    }
    return true;
  }
  bool all_of(size_t& node, int depth) {
    if (!term(node, depth)) return false;
    while (take("and") || take("AND") || take("&&")) {
      size_t right = 0;
      if (!term(right, depth)) return false;
      node = add(Gate::Kind::kAnd, node, right);
    }
    return true;
  }
  bool term(size_t& node, int depth) {
    if (take("(")) {
      if (depth >= kMaxDepth) return fail("parentheses are nested too deep");
      return any_of(node, depth + 1) && (take(")") || fail("expected ')'"));
    }
    size_t left = 0;
    size_t right = 0;
    if (!operand(left)) return false;
    const auto kind = comparison();
    if (!kind && at_ < text_.size() && text_[at_] == '=')
      return fail("a comparison is one of < <= > >= == !=, and no " +
                  std::string(text_.substr(at_, text_.substr(at_).starts_with("=>") ? 2 : 1)));
    if (!kind)
      return fail(std::string("expected a comparison (< <= > >= == !=), as in 'mfu < 30%'") +
                  (at_ == text_.size() ? "; a shell takes < and > for itself where they are not "
                                         "in quotes"
                                       : ""));
    if (!operand(right)) return false;
    node = add(*kind, left, right);
    return true;
  }
  std::optional<Gate::Kind> comparison() {
    using enum Gate::Kind;
    if (take("<=")) return kLessEqual;
    if (take(">=")) return kGreaterEqual;
    if (take("==")) return kEqual;
    if (take("!=")) return kNotEqual;
    if (take("<")) return kLess;
    if (take(">")) return kGreater;
    return std::nullopt;
  }
  bool operand(size_t& index) {
    skip_space();
    const size_t start = at_;
    Gate::Operand out;
    const char first = at_ < text_.size() ? text_[at_] : '\0';
    const bool is_number = (first >= '0' && first <= '9') || first == '.' || first == '-';
    if (!(is_number ? number(out) : figure(out))) return false;
    number_before_ = is_number;
    out.text = std::string(text_.substr(start, at_ - start));
    gate_.operands_.push_back(std::move(out));
    index = gate_.operands_.size() - 1;
    return true;
  }
  // How many characters of `text` are digits, a point and an exponent.
  static size_t digits_of(std::string_view text) {
    double ignored = 0;
    return static_cast<size_t>(
        std::from_chars(text.data(), text.data() + text.size(), ignored).ptr - text.data());
  }
  // Takes the word that is next where it is a unit, with `prefix` before it or else its own.
  const Unit* unit(std::string& prefix) {
    const WrittenUnit found = unit_at(text_.substr(at_));
    if (found.unit == nullptr) return nullptr;
    if (!prefix.empty() && (!found.prefix.empty() || !found.unit->prefixes)) return nullptr;
    at_ += found.length;
    prefix += found.prefix;
    return found.unit;
  }
  bool number(Gate::Operand& out) {
    const size_t start = at_;
    const bool negative = text_[at_] == '-';
    if (negative) ++at_;
    std::string_view behind = text_.substr(at_);
    std::string prefix, digits(behind.substr(0, digits_of(behind)));
    if (take_si(behind)) {
      const std::string_view all = text_.substr(at_, text_.size() - at_ - behind.size());
      prefix = all.substr(digits.size());
      at_ += all.size();
      const size_t end = at_;
      skip_space();
      out.unit = unit(prefix);
      if (out.unit == nullptr && !take("%") && !take("percent"))
        at_ = end;
      else
        out.percent = out.unit == nullptr;
    } else {
      at_ += digits.size();
      out.unit = digits.empty() ? nullptr : unit(prefix);
      if (out.unit == nullptr) at_ = start;
    }
    const auto value = parse_si(digits + prefix);
    if (at_ == start || !value)
      return fail("expected a number such as 2.1, 1e12 or 350G" +
                  (digits.empty() || digits.back() == '.' ? std::string() : kUnits));
    const double number = (negative ? -*value : *value) / (out.percent ? 100 : 1);
    const auto whole = negative || out.percent ? std::nullopt : parse_whole(digits + prefix);
    out.number = whole ? Figure::exact(*whole) : Figure::exact(number);
    return true;
  }
  bool figure(Gate::Operand& out) {
    do {
      const char first = at_ < text_.size() ? text_[at_] : '\0';
      if (first == '"' || first == '\'') {
        const size_t end = text_.find(first, at_ + 1);
        if (end == std::string_view::npos) return fail("this quote is not closed");
        out.figure.emplace_back(text_.substr(at_ + 1, end - at_ - 1));
        at_ = end + 1;
      } else {
        const size_t start = at_;
        while (at_ < text_.size() && is_word(text_[at_])) ++at_;
        if (at_ == start) return fail("expected a figure's name or a number, as in 'mfu < 30%'");
        out.figure.emplace_back(text_.substr(start, at_ - start));
      }
    } while (at_ < text_.size() && text_[at_] == '.' && ++at_ <= text_.size());
    return true;
  }

  bool number_before_ = false;  // the last operand is one
  std::string_view text_;
  Gate& gate_;
  size_t at_ = 0;
  std::string message_;
};

namespace {

std::string name_of(const FoundFigure& found) {
  return std::string(found.names[static_cast<size_t>(std::get<u128>(found.figure.value()))]);
}

// Why a figure has no value: more than that there is no number.
std::string why_no_value(const Figure& figure) {
  if (!figure.known()) return figure.why();
  if (figure.most()) return "it is known to lie between two";
  const bool more = has(figure.marks(), Mark::kAtLeast) || has(figure.marks(), Mark::kMoreThan);
  return more ? "launches are missing from it" : "";
}

bool is_known(const Figure::Value& end) { return end.index() != 0; }
// Both are known.
bool is_less(const Figure::Value& a, const Figure::Value& b) {
  const auto *whole = std::get_if<u128>(&a), *other = std::get_if<u128>(&b);
  if (whole != nullptr && other != nullptr) return *whole < *other;
  const auto number = [](const Figure::Value& end) {  // 64 bits of it
    const auto* integer = std::get_if<u128>(&end);
    return integer != nullptr ? static_cast<long double>(*integer) : std::get<double>(end);
  };
  return number(a) < number(b);
}

}  // namespace

// Three-valued: what is not known decides nothing, unless the rest decides without it.
class GateEvaluation {
 public:
  GateEvaluation(const Gate& gate, const FigureLookup& lookup) : gate_(gate) {
    for (const auto& operand : gate.operands_) {
      figures_.push_back(operand.figure.empty() ? FoundFigure{operand.number}
                                                : lookup(operand.figure));
    }
    for (const auto& node : gate.nodes_) {
      if (node.kind == Gate::Kind::kOr || node.kind == Gate::Kind::kAnd) continue;
      const bool equality = node.kind == Gate::Kind::kEqual || node.kind == Gate::Kind::kNotEqual;
      take_name(node.left, node.right, equality);
      take_name(node.right, node.left, equality);
      take_unit(node.left, node.right);
      take_unit(node.right, node.left);
    }
  }

  GateResult run() {
    GateResult out{gate_.text_, Verdict::kInvalid, named(), values()};
    for (const FoundFigure& found : figures_) {
      if (found.wrong.empty()) continue;
      out.message = found.wrong;
      return out;
    }
    for (const auto& node : gate_.nodes_) {
      if (node.kind == Gate::Kind::kOr || node.kind == Gate::Kind::kAnd) continue;
      const std::string meant =
          meant_in_percent(node.left, node.right) + meant_in_percent(node.right, node.left);
      if (meant.empty()) continue;
      out.message = meant;
      return out;
    }
    // Nodes come after those they hold, so one pass from the front has them all.
    for (const auto& node : gate_.nodes_) results_.push_back(result(node));
    out.verdict = verdict_of(results_.back());
    return out;
  }

 private:
  enum class Truth : uint8_t { kFalse, kOpen, kTrue };

  // The other side of a figure of names is one of the names, or another figure of the same names.
  void take_name(size_t figure, size_t other, bool equality) {
    const auto names = figures_[figure].names;
    if (names.empty() || (equality && figures_[other].names.data() == names.data())) return;
    const auto place = place_among(names, gate_.operands_[other].figure);
    if (!equality || !place) {
      figures_[other] = {.wrong = names_wanted(gate_.operands_[figure].text, names)};
      return;
    }
    figures_[other] = {.figure = Figure::exact(*place), .names = names};
    is_name_.insert(other);
  }

  // Converts a number to the unit of the figure that it is compared with.
  void take_unit(size_t number, size_t figure) {
    const Gate::Operand &given = gate_.operands_[number], &beside = gate_.operands_[figure];
    if (given.unit == nullptr || !figures_[figure].wrong.empty()) return;
    const Unit* const own = figures_[figure].unit;
    const std::string name = printable(beside.text);
    if (own == nullptr)
      figures_[number].wrong =
          beside.figure.empty()    ? "a number with a unit goes beside a figure: " + given.text
          : figures_[figure].share ? name + " is a share: write it in %"
                                   : name + " has no unit: write the number alone";
    else if (std::string_view(own->of) != given.unit->of)
      figures_[number].wrong = name + " is in " + own->name + ": a number beside it has no unit, " +
                               "or is in " + units_like(*own);
    else
      figures_[number].figure = in_unit(given.number, *given.unit, *own);
  }
  static Figure in_unit(const Figure& number, const Unit& given, const Unit& own) {
    u128 product = 0;
    const auto* const whole = std::get_if<u128>(&number.value());
    if (own.size == 1 && whole != nullptr &&
        !__builtin_mul_overflow(*whole, static_cast<u128>(given.size), &product))
      return Figure::exact(product);
    return Figure::exact(number.number().value_or(0) * given.size / own.size);
  }

  static Verdict verdict_of(Truth truth) {
    if (truth == Truth::kOpen) return Verdict::kNotKnown;
    return truth == Truth::kTrue ? Verdict::kFailed : Verdict::kPassed;
  }
  std::vector<GateResult::Named> named() const {
    std::vector<GateResult::Named> list;
    for (size_t i = 0; i < figures_.size(); ++i) {
      if (is_no_figure(i)) continue;
      const FoundFigure& found = figures_[i];
      GateResult::Named& to = list.emplace_back();
      to.name = gate_.operands_[i].text;
      if (found.has_value() && !found.names.empty()) {
        to.word = name_of(found);
      } else if (found.has_value()) {
        if (const auto* whole = std::get_if<u128>(&found.figure.value())) to.whole = *whole;
        to.value = found.figure.number();
      } else {
        const std::string bound = known_text(found);
        const std::string why = found.wrong + why_no_value(found.figure);
        to.reason = bound + (bound.empty() || why.empty() ? "" : "; ") + why;
        if (to.reason.empty()) to.reason = "null in the report";
      }
    }
    return list;
  }

  // "coverage < 95": no share comes near that. Empty where it is no such comparison.
  std::string meant_in_percent(size_t share, size_t limit) const {
    constexpr double kLeast = 2, kMost = 100;
    const Gate::Operand& number = gate_.operands_[limit];
    const double limited = number.number.number().value_or(0);
    if (!figures_[share].share || !number.figure.empty() || limited < kLeast || limited > kMost ||
        number.percent)
      return "";
    return printable(gate_.operands_[share].text) + " is a share, and 1 of it is 100 %: write " +
           number.text + "%";
  }

  Truth result(const Gate::Node& node) const {
    using enum Gate::Kind;
    if (node.kind == kOr) return std::max(results_[node.left], results_[node.right]);
    if (node.kind == kAnd) return std::min(results_[node.left], results_[node.right]);
    const Figure& a = figures_[node.left].figure;
    const Figure& b = figures_[node.right].figure;
    const Truth below = less(a, b), above = less(b, a);
    switch (node.kind) {
      case kLess:
        return below;
      case kGreater:
        return above;
      case kLessEqual:
        return opposite(above);
      case kGreaterEqual:
        return opposite(below);
      default:
        break;
    }
    // Neither below nor above; one of them decides that they differ.
    const Truth equal = opposite(std::max(below, above));
    return node.kind == kEqual ? equal : opposite(equal);
  }
  static Truth opposite(Truth truth) {
    return truth == Truth::kOpen ? truth : truth == Truth::kTrue ? Truth::kFalse : Truth::kTrue;
  }
  // Whether a < b, as far as their ends say.
  static Truth less(const Figure& a, const Figure& b) {
    const auto a_low = a.low(), a_high = a.high(), b_low = b.low(), b_high = b.high();
    if (is_known(a_high) && is_known(b_low) && is_less(a_high, b_low)) return Truth::kTrue;
    if (is_known(a_low) && is_known(b_high) && !is_less(a_low, b_high)) return Truth::kFalse;
    return Truth::kOpen;
  }
  // "ratio = 1.69, total.flop is not known"
  std::string values() const {
    std::string text;
    for (size_t i = 0; i < figures_.size(); ++i) {
      if (is_no_figure(i)) continue;
      const std::string shown = known_text(figures_[i]), why = why_no_value(figures_[i].figure);
      text += (text.empty() ? "" : ", ") + printable(gate_.operands_[i].text) +
              (shown.empty() ? " is not known" : " " + shown);
      if (!why.empty()) text += " (" + why + ")";
    }
    return text;
  }

  bool is_no_figure(size_t operand) const {
    return gate_.operands_[operand].figure.empty() || is_name_.contains(operand);
  }

  const Gate& gate_;
  std::vector<FoundFigure> figures_;  // one for each operand
  std::set<size_t> is_name_;          // of the operands
  std::vector<Truth> results_;
};

std::string known_text(const FoundFigure& found) {
  const auto text_of = [](const Figure::Value& end) {
    const auto* whole = std::get_if<u128>(&end);
    return whole != nullptr ? to_decimal(*whole) : printed("%.10g", std::get<double>(end));
  };
  const Figure::Value low = found.figure.low(), high = found.figure.high();
  if (found.has_value()) return "= " + (found.names.empty() ? text_of(low) : name_of(found));
  if (is_known(low))
    return ">= " + text_of(low) + (is_known(high) ? " and <= " + text_of(high) : std::string());
  return is_known(high) ? "<= " + text_of(high) : "";
}

std::optional<size_t> place_among(std::span<const std::string_view> names,
                                  const FigurePath& operand) {
  if (operand.size() != 1) return std::nullopt;
  const auto found = std::ranges::find(names, operand[0]);
  if (found == names.end()) return std::nullopt;
  return static_cast<size_t>(found - names.begin());
}

std::string names_wanted(const std::string& figure, std::span<const std::string_view> names) {
  const std::string shown = printable(figure);
  return shown + " is a name: write " + shown + " == or != one of " + joined(names, ", ");
}

bool Gate::parse(std::string_view text, Gate& gate, std::string& error) {
  gate = Gate();
  gate.text_ = std::string(text);
  GateParser parser(text, gate);
  if (parser.parse()) return true;
  error = parser.error();
  return false;
}

std::vector<Gate::Sides> Gate::comparisons() const {
  std::vector<Sides> sides;
  for (const Node& node : nodes_)
    if (node.kind != Kind::kOr && node.kind != Kind::kAnd)
      sides.push_back({operands_[node.left].figure, operands_[node.right].figure,
                       node.kind == Kind::kEqual || node.kind == Kind::kNotEqual});
  return sides;
}

GateResult Gate::evaluate(const FigureLookup& lookup) const {
  return GateEvaluation(*this, lookup).run();
}

}  // namespace flopinj::reduce
