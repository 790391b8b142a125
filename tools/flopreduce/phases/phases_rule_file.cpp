// Rules as text: the lines of a rule file, NAME=REGEX, and what they say in words.
#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "phases/phases.h"
#include "support/data.h"
#include "support/numbered_lines.h"
#include "support/program_name.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

using std::string_view_literals::operator""sv;

using Rule = PhaseRules::Rule;
using Match = PhaseRules::Match;
using Subject = PhaseRules::Subject;
using Inside = PhaseRules::Inside;

// All in the order of their enumerations: what files call them, and how they are said.
constexpr std::string_view kSubjects[] = {"range", "thread", "kernel", "number"};
constexpr std::string_view kSubjectsSaid[] = {"range ", "thread ", "kernel ", "sequence number "};
constexpr std::string_view kMatches[] = {"word", "lone-word", "prefix", "contains",
                                         "node", "regex",     "is"};
constexpr std::string_view kMatchesSaid[] = {"has the word '*'",
                                             "has the word '*'",
                                             "starts with '*'",
                                             "contains '*'",
                                             "ends in '*' and a number",
                                             "matches /*/",
                                             ""};
constexpr std::string_view kInsides[] = {"in:", "node:", "hook:"};
constexpr std::string_view kInsidesSaid[] = {"", "an autograd node of ", "a hook of "};
constexpr std::string_view kNumbers[kNumberTells] = {"", "between", "unclear", "again", "nameless"};
constexpr std::string_view kNumbersSaid[kNumberTells] = {
    "", "between those of one backward pass", "in no backward pass, or also before one",
    "of its own in an autograd node that has none for its gradient",
    "of no operator, as those of its whole training step"};

template <class Names, class Value>
std::string_view name_of(const Names& names, Value value) {
  return names[static_cast<size_t>(value)];
}
template <class Names, class Value>
bool read(const Names& names, std::string_view text, Value& value) {
  const auto found = std::ranges::find(names, text);
  if (found == std::end(names)) return false;
  value = static_cast<Value>(found - std::begin(names));
  return true;
}

// Takes the next word off `rest`.
std::string_view word(std::string_view& rest) {
  rest = trimmed(rest);
  const std::string_view found = rest.substr(0, rest.find_first_of(kBlanks));
  rest = trimmed(rest.substr(found.size()));
  return found;
}

// Of phases, and of NVTX domains in rules.
bool is_name(std::string_view name) {
  constexpr size_t kLongest = 64;
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, [](char c) {
    return is_alnum(c) || c == '_' || c == '-' || c == '.';
  });
}

// The error, or empty.
std::string complete(Rule& rule) {
  NumberTells tells{};
  if ((rule.subject == Subject::kNumber) != (rule.match == Match::kIs))
    return "'is' is for numbers, and numbers have no other match";
  if (rule.match == Match::kIs && !read(kNumbers, rule.pattern, tells))
    return "a number is 'between', 'unclear' or 'again'";
  if (rule.pattern.size() > kMaxPatternBytes)
    return "the pattern is longer than " + std::to_string(kMaxPatternBytes) + " bytes";
  if (rule.match == Match::kRegex) rule.regex = std::make_shared<const RuleRegex>(rule.pattern);
  return {};
}

// Of a rule of the user's, whose pattern may be none.
std::string pattern_error(const Rule& rule) { return rule.regex ? rule.regex->error() : ""; }

}  // namespace

std::vector<Rule> PhaseRules::parse_line(std::string_view line, std::string& error) {
  std::string_view rest = trimmed(line);
  const std::string_view phase = word(rest);
  if (phase.empty() || phase[0] == '#') return {};
  Rule rule;
  const auto fail = [&](const std::string& what) {
    error = what;
    return std::vector<Rule>();
  };
  if (!is_name(phase))
    return fail("'" + printable(cut(phase, 80)) +
                "' is no name of a phase: use at most 64 letters, digits, '_', '-', '.'");
  rule.phase = phase;
  if (const std::string_view subject = word(rest); !read(kSubjects, subject, rule.subject))
    return fail("'" + printable(cut(subject, 80)) + "' is none of range, thread, kernel, number");
  std::string_view kind = word(rest);
  for (const auto& [key, form, to] :
       {std::tuple{"in:"sv, "in:PHASE names a phase"sv, &rule.within},
        std::tuple{"node:"sv, "node:PHASE names a phase"sv, &rule.within},
        std::tuple{"hook:"sv, "hook:PHASE names a phase"sv, &rule.within},
        std::tuple{"domain:"sv, "domain:NAME names an NVTX domain"sv, &rule.domain}}) {
    if (!kind.starts_with(key)) continue;
    *to = kind.substr(key.size());
    if (key == "node:") rule.inside = Inside::kNode;
    if (key == "hook:") rule.inside = Inside::kHook;
    const bool fits =
        rule.subject == Subject::kRange ||
        (rule.subject == Subject::kNumber && to == &rule.within && rule.inside == Inside::kPhase);
    if (!is_name(*to) || !fits)
      return fail(std::string(form) + " in letters, digits, '_', '-', '.', and is for ranges");
    kind = word(rest);
  }
  if (!read(kMatches, kind, rule.match))
    return fail("'" + printable(cut(kind, 80)) +
                "' is none of word, lone-word, prefix, contains, node, regex, is");
  std::vector<Rule> rules;
  constexpr std::string_view kBetween = " | ";
  do {
    const size_t end = rule.match == Match::kRegex ? rest.npos : rest.find(kBetween);
    rule.pattern = trimmed(rest.substr(0, end));
    rest.remove_prefix(end == rest.npos ? rest.size() : end + kBetween.size());
    if (rule.pattern.empty()) return fail("the pattern is missing");
    if (error = complete(rule); !error.empty()) return {};
    rules.push_back(rule);
  } while (!rest.empty());
  return rules;
}

std::string PhaseRules::describe(const Rule& rule) {
  if (rule.match == Match::kDefault) return "no rule matched";
  const std::string within = std::string(name_of(kInsidesSaid, rule.inside)) + rule.within;
  const std::string subject = (rule.within.empty() ? "" : "inside " + within + ", ") +
                              std::string(name_of(kSubjectsSaid, rule.subject)) +
                              (rule.domain.empty() ? "" : "of domain '" + rule.domain + "' ");
  NumberTells tells{};
  if (rule.match == Match::kIs && read(kNumbers, rule.pattern, tells))
    return subject + std::string(name_of(kNumbersSaid, tells));
  std::string said(name_of(kMatchesSaid, rule.match));
  return subject + said.replace(said.find('*'), 1, rule.pattern);
}

std::string_view PhaseRules::number_name(NumberTells tells) { return name_of(kNumbers, tells); }

std::string_view PhaseRules::built_in() { return data::kPhaseRules; }

std::string PhaseRules::line_of(const Rule& rule) {
  std::string line = rule.phase + " " + std::string(name_of(kSubjects, rule.subject)) + " ";
  if (!rule.within.empty()) line += std::string(name_of(kInsides, rule.inside)) + rule.within + " ";
  if (!rule.domain.empty()) line += "domain:" + rule.domain + " ";
  return line + std::string(name_of(kMatches, rule.match)) + " " + rule.pattern;
}

std::optional<std::string> PhaseRules::add_user_rule(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string phase = text.substr(0, equals);
  if (equals == std::string::npos || equals + 1 == text.size() || !is_name(phase))
    return "--phase " + printable(text) +
           ": expected NAME=REGEX, for example --phase 'recompute=checkpoint'";
  Rule rule{phase,         Subject::kRange,         "",     Inside::kPhase, "",
            Match::kRegex, text.substr(equals + 1), nullptr};
  std::string error = complete(rule);
  if (error.empty()) error = pattern_error(rule);
  if (!error.empty()) return "--phase " + printable(text) + ": " + printable(error);
  add_in_front({std::move(rule)});
  return std::nullopt;
}

std::optional<std::string> PhaseRules::add_rule_file(const std::string& name,
                                                     std::string_view text) {
  std::vector<Rule> rules;
  auto error = read_lines(name, text, kMaxRules - user_rules_, pattern_error, rules);
  if (!error) add_in_front(std::move(rules));
  return error;
}

std::optional<std::string> PhaseRules::read_lines(
    const std::string& name, std::string_view text, size_t most,
    const std::function<std::string(const Rule&)>& error_of, std::vector<Rule>& rules) {
  const std::string form =
      "a line is PHASE SUBJECT [in:PHASE | node:PHASE | hook:PHASE] [domain:NAME] MATCH PATTERN; "
      "see " +
      typed("rules");
  std::map<std::string, std::shared_ptr<const RuleRegex>> regexes;  // phases may share a pattern
  return for_each_line(
      name, text, kMaxRuleFileBytes, form, [&](std::string_view line, const std::string&) {
        std::string error;
        std::vector<Rule> of_line = parse_line(line, error);
        if (error.empty() && rules.size() + of_line.size() > most)
          error = "more than " + std::to_string(kMaxRules) + " rules";
        for (Rule& rule : of_line) {
          if (rule.regex) rule.regex = regexes.try_emplace(rule.pattern, rule.regex).first->second;
          if (error.empty()) error = error_of(rule);
          rules.push_back(std::move(rule));
        }
        return printable(error);
      });
}

// Behind the user's rules that were there before.
void PhaseRules::add_in_front(std::vector<Rule> rules) {
  std::vector<Rule> all = *rules_;
  all.insert(all.begin() + user_rules_, std::make_move_iterator(rules.begin()),
             std::make_move_iterator(rules.end()));
  user_rules_ += static_cast<uint32_t>(rules.size());
  rules_ = std::make_shared<const std::vector<Rule>>(std::move(all));
}

}  // namespace flopinj::reduce
