#include <collector/ranges/range_filter.h>
#include <collector/ranges/range_name.h>
#include <collector/ranges/range_path_table.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <utility>

namespace flopinj {
namespace {

constexpr size_t kMostBytes = 4'096;

// A character of the language, or (plain) of a name.
struct Token {
  char c;
  bool plain;
  bool is(char wanted) const { return !plain && c == wanted; }
};
using Tokens = std::vector<Token>;

std::optional<Tokens> tokens_of(std::string_view text) {
  constexpr std::string_view kLanguage = "@,[]/*+|";
  Tokens tokens;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      tokens.push_back({text[i], kLanguage.find(text[i]) == std::string_view::npos});
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    tokens.push_back({text[i], true});
  }
  return tokens;
}

std::vector<Tokens> split(const Tokens& tokens, char at) {
  std::vector<Tokens> parts(1);
  for (const Token& token : tokens) {
    if (token.is(at))
      parts.emplace_back();
    else
      parts.back().push_back(token);
  }
  return parts;
}

// Nothing where it is empty, or something of the language is in it.
std::optional<std::string> name_of(const Tokens& tokens) {
  std::string name;
  for (const Token& token : tokens) {
    if (!token.plain) return std::nullopt;
    name += token.c;
  }
  if (name.empty()) return std::nullopt;
  return name;
}

bool add_step(RangeExpression& to, const Tokens& tokens) {
  using Part = RangeExpression::Part;
  if (tokens.size() == 1 && (tokens[0].is('*') || tokens[0].is('+'))) {
    to.steps.push_back({tokens[0].is('*') ? Part::kAnyRanges : Part::kOneRange, {}});
    return true;
  }
  const auto name = name_of(tokens);
  if (name) to.steps.push_back({Part::kName, parse_range_name(*name).key});
  return name.has_value();
}

std::optional<RangeExpression> parse_one(const Tokens& tokens) {
  RangeExpression result;
  std::vector<Tokens> sides = split(tokens, '@');
  if (sides.size() > 2) return std::nullopt;
  if (sides.size() == 2) {
    const auto domain = name_of(sides.front());
    if (!domain) return std::nullopt;
    result.domain = *domain;
  }
  Tokens ranges = std::move(sides.back());
  if (ranges.empty()) return std::nullopt;
  result.from_first = ranges.front().is('[');
  if (result.from_first) ranges.erase(ranges.begin());
  result.to_last = !ranges.empty() && ranges.back().is(']');
  if (result.to_last) ranges.pop_back();
  const bool slashes = std::ranges::any_of(ranges, [](const Token& t) { return t.is('/'); });
  result.process = !slashes && !result.from_first && !result.to_last;

  std::vector<Tokens> names = split(ranges, result.process ? ',' : '/');
  if (slashes && names.back().empty() && !result.to_last) names.pop_back();  // "A/"
  for (const Tokens& name : names)
    if (!add_step(result, name)) return std::nullopt;
  const auto is_name = [](const auto& s) { return s.part == RangeExpression::Part::kName; };
  const bool ends_named =
      !result.steps.empty() && is_name(result.steps.front()) && is_name(result.steps.back());
  if (!ends_named || (result.process && !std::ranges::all_of(result.steps, is_name)))
    return std::nullopt;
  return result;
}

// Whether the names of open ranges, the outermost first, are as the expression has it.
bool matches(const RangeExpression& expression,
             const std::array<const std::string*, RangeFilter::kMostOpen>& names, size_t count) {
  // How many of the open ranges the steps so far may have come to.
  std::bitset<RangeFilter::kMostOpen + 1> reached;
  for (size_t i = 0; i <= (expression.from_first ? 0 : count); ++i) reached.set(i);
  for (const auto& [part, name] : expression.steps) {
    std::bitset<RangeFilter::kMostOpen + 1> next;
    bool below = false;
    for (size_t i = 0; i <= count; ++i) {
      below |= reached[i];
      if (part == RangeExpression::Part::kAnyRanges)
        next[i] = below;
      else if (i > 0)
        next[i] = reached[i - 1] &&
                  (part == RangeExpression::Part::kOneRange || is_range_name(*names[i - 1], name));
    }
    reached = next;
  }
  return expression.to_last ? reached[count] : reached.any();
}

}  // namespace

std::optional<std::vector<RangeExpression>> parse_range_expressions(std::string_view text) {
  constexpr std::string_view kRegex = "regex:";
  if (text.size() > kMostBytes) return std::nullopt;
  const auto tokens = tokens_of(text);
  if (!tokens) return std::nullopt;
  std::vector<RangeExpression> expressions;
  for (const Tokens& alternative : split(*tokens, '|')) {
    const auto same = [](char c, const Token& token) { return token.plain && token.c == c; };
    if (alternative.size() >= kRegex.size() &&
        std::equal(kRegex.begin(), kRegex.end(), alternative.begin(), same))
      return std::nullopt;
    auto expression = parse_one(alternative);
    if (!expression) return std::nullopt;
    expressions.push_back(*std::move(expression));
  }
  return expressions;
}

RangeFilter::RangeFilter(std::vector<RangeExpression> expressions, RangePathTable& table) {
  for (RangeExpression& expression : expressions) {
    const StringId domain = table.intern_string(expression.domain);
    expressions_.push_back({std::move(expression), domain});
  }
}

bool RangeFilter::chosen_by_process(const Open* open, size_t count) const noexcept {
  return std::ranges::any_of(expressions_, [&](const Expression& e) {
    return e.text.process && std::ranges::all_of(e.text.steps, [&](const auto& step) {
             return std::any_of(open, open + count, [&](const Open& range) {
               return range.domain == e.domain && is_range_name(*range.key, step.name);
             });
           });
  });
}

bool RangeFilter::chosen_by_thread(const Open* open, size_t count) const noexcept {
  return std::ranges::any_of(expressions_, [&](const Expression& e) {
    if (e.text.process) return false;
    std::array<const std::string*, kMostOpen> names;
    size_t named = 0;
    for (size_t i = 0; i < std::min(count, kMostOpen); ++i)
      if (open[i].domain == e.domain) names[named++] = open[i].key;
    return matches(e.text, names, named);
  });
}

}  // namespace flopinj
