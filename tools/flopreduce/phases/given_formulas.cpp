#include "phases/given_formulas.h"

#include <algorithm>
#include <array>

#include "support/numbered_lines.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// In the order of GivenFormula::Of.
constexpr std::array<std::string_view, 3> kFormulaSubjects = {"operator", "range", "kernel"};

}  // namespace

// As far as the last '*' that fitted may stand for more, it is tried again: the time is at most the
// product of both lengths.
bool fits_pattern(std::string_view pattern, std::string_view text) {
  size_t at = 0, in = 0, star = pattern.npos, from = 0;
  while (in < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      from = in;
    } else if (at < pattern.size() && pattern[at] == text[in]) {
      ++at;
      ++in;
    } else if (star != pattern.npos) {
      at = star + 1;
      in = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == pattern.npos;
}

std::optional<std::string> GivenFormulas::add_file(const std::string& name, std::string_view text) {
  std::deque<Line> added;
  const auto add_line = [&](std::string_view whole, const std::string& place) -> std::string {
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.front() == '#') return "";
    const std::string_view subject = line.substr(0, line.find_first_of(kBlanks));
    const auto known = std::ranges::find(kFormulaSubjects, subject);
    if (known == kFormulaSubjects.end())
      return "'" + printable(cut(subject, 60)) + "' is none of operator, range, kernel";
    const size_t equals = line.rfind('=');  // patterns may have some, formulas have none
    if (equals == line.npos) return "'=' is missing";
    const std::string_view pattern = trimmed(line.substr(subject.size(), equals - subject.size()));
    if (pattern.empty()) return "the pattern is missing";
    if (lines_.size() + added.size() == kMaxFormulas)
      return "more than " + std::to_string(kMaxFormulas) + " formulas";
    std::string error;
    const auto of = static_cast<GivenFormula::Of>(known - kFormulaSubjects.begin());
    auto formula = GivenFormula::parse(trimmed(line.substr(equals + 1)), of, error);
    if (!formula) return error;
    formula->source = place;
    added.push_back({of, std::string(pattern), std::move(*formula)});
    return "";
  };
  if (auto error =
          for_each_line(name, text, kMaxFormulaFileBytes,
                        "a line is operator, range or kernel, PATTERN = FORMULA", add_line))
    return error;
  std::ranges::move(added, std::back_inserter(lines_));
  return std::nullopt;
}

const GivenFormula* GivenFormulas::find(GivenFormula::Of of, std::string_view name) const {
  for (const Line& line : lines_)
    if (line.of == of && fits_pattern(line.pattern, name)) return &line.formula;
  return nullptr;
}

std::vector<const GivenFormula*> GivenFormulas::all() const {
  std::vector<const GivenFormula*> all;
  for (const Line& line : lines_) all.push_back(&line.formula);
  return all;
}

}  // namespace flopinj::reduce
