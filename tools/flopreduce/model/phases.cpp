#include "model/phases.h"

#include <algorithm>
#include <cctype>

#include "support/text.h"

namespace flopinj::reduce {
namespace {

using Match = PhaseRules::Match;

struct BuiltIn {
  const char* phase;
  const char* pattern;
  Match match;
  bool on_thread;
  uint8_t group;
};

// Framework names first, then words. Order decides within one name.
constexpr BuiltIn kBuiltIn[] = {
    {"backward", "autograd::engine::evaluate_function", Match::kPrefix, false, 0},
    {"backward", "torch::autograd::", Match::kPrefix, false, 0},
    {"backward", "Backward", Match::kAutogradNode, false, 0},
    {"optimizer", "Optimizer.step#", Match::kPrefix, false, 0},
    {"optimizer", "Optimizer.zero_grad#", Match::kPrefix, false, 0},
    {"forward", "forward", Match::kWord, false, 1},
    {"forward", "fwd", Match::kWord, false, 1},
    {"backward", "backward", Match::kWord, false, 1},
    {"backward", "bwd", Match::kWord, false, 1},
    {"backward", "backprop", Match::kWord, false, 1},
    {"optimizer", "optimizer", Match::kWord, false, 1},
    {"optimizer", "optim", Match::kWord, false, 1},
    {"loss", "loss", Match::kWord, false, 2},
    {"loss", "criterion", Match::kWord, false, 2},
    {"backward", "pt_autograd_", Match::kPrefix, true, 0},
    {"backward", "autograd", Match::kWord, true, 0},
};

// Longer names are not read further: patterns sit at the start, and user rules stay cheap.
constexpr size_t kMatchedBytes = 512;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

bool has_word(std::string_view name, std::string_view word) {
  auto from = name.begin();
  while (true) {
    const auto at = std::search(from, name.end(), word.begin(), word.end(), same_letter);
    if (at == name.end()) return false;
    const auto after = at + static_cast<std::ptrdiff_t>(word.size());
    if ((at == name.begin() || !is_word(*(at - 1))) && (after == name.end() || !is_word(*after)))
      return true;
    from = at + 1;
  }
}

bool is_autograd_node(std::string_view name, std::string_view suffix) {
  name = name.substr(0, name.find_first_of(", "));
  size_t end = name.size();
  while (end > 0 &&
         (std::isdigit(static_cast<unsigned char>(name[end - 1])) != 0 || name[end - 1] == '#'))
    --end;
  return end < name.size() && name.substr(0, end).ends_with(suffix);
}

bool matches(const PhaseRules::Rule& rule, std::string_view name) {
  switch (rule.match) {
    case Match::kWord:
      return has_word(name, rule.pattern);
    case Match::kPrefix:
      return name.starts_with(rule.pattern);
    case Match::kAutogradNode:
      return is_autograd_node(name, rule.pattern);
    case Match::kRegex:
      return std::regex_search(name.begin(), name.end(), *rule.regex);
    case Match::kDefault:
      return false;
  }
  return false;
}

}  // namespace

PhaseRules::PhaseRules() {
  for (const auto& b : kBuiltIn)
    rules_.push_back({b.phase, b.pattern, b.match, b.on_thread, b.group, nullptr});
  rules_.push_back({"other", "", Match::kDefault, false, 0, nullptr});
}

std::optional<std::string> PhaseRules::add_user_rule(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return "--phase " + printable(text) +
           ": expected NAME=REGEX, for example --phase 'recompute=checkpoint'";
  Rule rule{text.substr(0, equals), text.substr(equals + 1), Match::kRegex, false, 0, nullptr};
  try {
    auto flags = std::regex::ECMAScript | std::regex::icase;
#ifdef _GLIBCXX_RELEASE
    flags |= std::regex_constants::__polynomial;  // no backtracking: a name cannot make a rule take
                                                  // for ever
#endif
    rule.regex = std::make_shared<std::regex>(rule.pattern, flags);
  } catch (const std::regex_error& e) {
    return "--phase " + printable(text) + ": not a regular expression: " + e.what();
  }
  rules_.insert(rules_.begin() + static_cast<std::ptrdiff_t>(user_rules_++), std::move(rule));
  return std::nullopt;
}

uint32_t PhaseRules::match(std::string_view name, bool thread) const {
  name = name.substr(0, kMatchedBytes);
  for (size_t i = 0; i < rules_.size(); ++i) {
    const Rule& rule = rules_[i];
    if (rule.on_thread != thread || !matches(rule, name)) continue;
    const bool cancelled =
        rule.group != 0 && std::any_of(rules_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                       rules_.end(), [&](const Rule& r) {
                                         return r.group == rule.group && r.on_thread == thread &&
                                                r.phase != rule.phase && matches(r, name);
                                       });
    return cancelled ? kNoIndex : static_cast<uint32_t>(i);
  }
  return kNoIndex;
}

std::string PhaseRules::describe(const Rule& rule) {
  const std::string where = rule.on_thread ? "thread " : "range ";
  switch (rule.match) {
    case Match::kWord:
      return where + "has the word '" + rule.pattern + "'";
    case Match::kPrefix:
      return where + "starts with '" + rule.pattern + "'";
    case Match::kAutogradNode:
      return where + "ends in '" + rule.pattern + "' and a number";
    case Match::kRegex:
      return where + "matches /" + rule.pattern + "/";
    case Match::kDefault:
      return "no rule matched";
  }
  return {};
}

PhaseMap::PhaseMap(const PhaseRules& rules, const NamePool& names, const PathTable& paths)
    : rules_(rules),
      names_(names),
      own_(paths.size(), kNoIndex),
      inherited_(paths.size(), kNoIndex) {
  std::unordered_map<uint32_t, uint32_t> by_name;
  for (uint32_t i = PathTable::kLost + 1; i < paths.size(); ++i) {
    const auto [entry, fresh] = by_name.try_emplace(paths[i].name, kNoIndex);
    if (fresh) entry->second = rules_.match_range(names_[paths[i].name]);
    own_[i] = entry->second;
    inherited_[i] = own_[i] != kNoIndex ? own_[i] : inherited_[paths[i].parent];
  }
}

uint32_t PhaseMap::rule_of(uint32_t path, uint32_t thread_name) {
  if (inherited_[path] != kNoIndex) return inherited_[path];
  const auto [entry, fresh] = thread_rule_.try_emplace(thread_name, kNoIndex);
  if (fresh) {
    const uint32_t rule = rules_.match_thread(names_[thread_name]);
    entry->second = rule != kNoIndex ? rule : rules_.default_rule();
  }
  return entry->second;
}

}  // namespace flopinj::reduce
