#include "phases/phases.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "support/text.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {
namespace {

using Match = PhaseRules::Match;
using Subject = PhaseRules::Subject;
using Inside = PhaseRules::Inside;

// Longer names are not read further: patterns sit at the start, and user rules stay cheap. Mangled
// kernel names are longer, and may differ only at their end.
constexpr size_t kMatchedBytes = 512;
constexpr size_t kMatchedKernelBytes = 16384;

// What the rules know launches of autograd's threads by that are without_names().
constexpr std::string_view kInNoNode = "(in no node)";

bool same_letter(char a, char b) { return lower(a) == lower(b); }

bool has_word(std::string_view name, std::string_view word) {
  auto from = name.begin();
  while (true) {
    const auto at = std::search(from, name.end(), word.begin(), word.end(), same_letter);
    if (at == name.end()) return false;
    const auto after = at + static_cast<std::ptrdiff_t>(word.size());
    if ((at == name.begin() || !is_alnum(*(at - 1))) && (after == name.end() || !is_alnum(*after)))
      return true;
    from = at + 1;
  }
}

bool is_autograd_node(std::string_view name, std::string_view suffix) {
  name = name.substr(0, name.find_first_of(", "));
  size_t end = name.size();
  while (end > 0 && (is_digit(name[end - 1]) || name[end - 1] == '#')) --end;
  return end < name.size() && name.substr(0, end).ends_with(suffix);
}

// PyTorch's: torch/csrc/autograd/engine.cpp, evaluate_function, and what it evaluates.
constexpr std::string_view kEvaluates = "autograd::engine::evaluate_function: ";
constexpr std::string_view kOfALeaf = "torch::autograd::AccumulateGrad";

bool names_autograd_node(std::string_view name) {
  return name.starts_with("autograd::engine::evaluate_function") ||
         name.starts_with("torch::autograd::") || is_autograd_node(name, "Backward");
}

// Whether `name` is the range of the node that the range `around` evaluates.
bool names_node_of(std::string_view around, std::string_view name) {
  return around.starts_with(kEvaluates) &&
         around.substr(kEvaluates.size()) == name.substr(0, name.find(", "));
}

bool matches(const PhaseRules::Rule& rule, std::string_view name) {
  switch (rule.match) {
    case Match::kWord:
    case Match::kLoneWord:
      return has_word(name, rule.pattern);
    case Match::kPrefix:
      return name.starts_with(rule.pattern);
    case Match::kContains:
      return contains_any_case(name, rule.pattern);
    case Match::kNode:
      return is_autograd_node(name, rule.pattern);
    case Match::kRegex:
      return rule.regex->found_in(name);
    case Match::kIs:
      return name == rule.pattern;
    case Match::kDefault:
      return false;
  }
  return false;
}

}  // namespace

PhaseRules::PhaseRules() {
  static const auto kBuiltIn = [] {
    std::vector<Rule> rules;
    read_lines(
        "built-in rules", built_in(), kMaxRules, [](const Rule&) { return ""; }, rules);
    rules.push_back(
        {"other", Subject::kRange, "", Inside::kPhase, "", Match::kDefault, "", nullptr});
    return std::make_shared<const std::vector<Rule>>(std::move(rules));
  }();
  rules_ = kBuiltIn;
}

uint32_t PhaseRules::match(Subject subject, std::string_view name, std::string_view within,
                           std::string_view domain, Inside inside) const {
  name = name.substr(0, subject == Subject::kKernel ? kMatchedKernelBytes : kMatchedBytes);
  const std::vector<Rule>& all = rules();
  for (size_t i = 0; i < all.size(); ++i) {
    const Rule& rule = all[i];
    const auto applies = [&](const Rule& r) {
      // A number decides only where nothing else does, but for phases that its rule names.
      const bool anywhere = r.within.empty() && subject != Subject::kNumber;
      return r.subject == subject && (anywhere || r.within == within) && r.inside <= inside &&
             (r.domain.empty() || std::ranges::equal(r.domain, domain, same_letter)) &&
             matches(r, name);
    };
    if (!applies(rule)) continue;
    // A lone word of another phase takes it back. The same word inside a phase is no other word.
    const auto cancels = [&](const Rule& r) {
      return r.match == Match::kLoneWord && r.phase != rule.phase && r.pattern != rule.pattern &&
             r.within.empty() && applies(r);
    };
    const bool cancelled =
        rule.match == Match::kLoneWord &&
        std::any_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(), cancels);
    return cancelled || rule.phase == kNoPhase ? kNoIndex : static_cast<uint32_t>(i);
  }
  return kNoIndex;
}

bool PhaseRules::leaves_unclear(uint32_t rule) const {
  const Rule& r = rules()[rule];
  return r.subject == Subject::kNumber && r.pattern == number_name(NumberTells::kUnclear) &&
         r.phase == rules().back().phase;
}

uint32_t KnownMatches::match(Subject subject, std::string_view name, std::string_view within,
                             std::string_view domain, PhaseRules::Inside inside) {
  key_ = {static_cast<char>(subject), static_cast<char>(inside)};
  for (const std::string_view part : {within, domain})
    key_.append(std::to_string(part.size())).append(" ").append(part);
  key_.append(name);
  const auto found = rule_.find(key_);
  if (found != rule_.end()) return found->second;
  if (bytes_ + key_.size() > kMostBytes) {
    rule_.clear();
    bytes_ = 0;
  }
  bytes_ += key_.size();
  const uint32_t rule = rules_.match(subject, name, within, domain, inside);
  rule_.emplace(key_, rule);
  return rule;
}

PhaseMap::PhaseMap(const PhaseRules& rules, const TraceTables& tables, KnownMatches* known_matches)
    : rules_(rules),
      tables_(tables),
      known_(known_matches),
      inside_(tables.paths.size(), Inside::kPhase),
      unnamed_(rules.match(Subject::kThread, kInNoNode)),
      autograd_(find_nodes()),
      own_(tables.paths.size(), kNoIndex),
      inherited_(tables.paths.size(), kNoIndex),
      beside_(tables.paths.size(), false),
      kernel_(tables.signatures.size(), kNoIndex) {
  find_hooks();
  std::map<std::array<uint32_t, 4>, uint32_t>
      known;  // name, domain, the rule around it, and where it is
  for (uint32_t i = PathTable::kLost + 1; i < tables.paths.size(); ++i) {
    const auto& path = tables.paths[i];
    const uint32_t around = inherited_[path.parent];
    const Inside inside = autograd_ ? inside_[path.parent] : Inside::kNode;
    const auto [entry, fresh] = known.try_emplace(
        {path.name, path.domain, around, static_cast<uint32_t>(inside)}, kNoIndex);
    if (fresh) entry->second = match_range(i, around, inside);
    own_[i] = entry->second;
    inherited_[i] = own_[i] != kNoIndex ? own_[i] : around;
  }
  find_beside();
  std::unordered_map<uint32_t, uint32_t> kernels;
  for (uint32_t i = SignatureTable::kUndefined + 1; i < tables.signatures.size(); ++i) {
    const uint32_t name = tables.signatures[i].name;
    const auto [entry, fresh] = kernels.try_emplace(name, kNoIndex);
    if (fresh) entry->second = match(Subject::kKernel, tables.names[name]);
    kernel_[i] = entry->second;
  }
}

// Whether there are any, or threads that run them.
bool PhaseMap::find_nodes() {
  bool any = false;
  for (uint32_t i = PathTable::kLost + 1; i < inside_.size(); ++i) {
    const auto& path = tables_.paths[i];
    const bool node = names_autograd_node(tables_.names[path.name]);
    inside_[i] = node ? Inside::kNode : inside_[path.parent];
    any = any || node;
  }
  nodes_ = any;
  for (const TraceState& trace : tables_.traces)
    for (uint32_t id = 1; id <= trace.threads.size() && !any; ++id)
      if (const uint32_t name = trace.threads.get(id); name != kNoIndex) {
        const uint32_t rule = match(Subject::kThread, tables_.names[name]);
        any = rule != kNoIndex && phase(rule) == "backward";
      }
  return any;
}

// Autograd runs hooks beside the range of the node itself; those of a parameter, once its gradient
// is accumulated, inside of it. Of a node that has no range of its own nothing is known, but for a
// leaf's: torch.autograd.grad() takes the gradient and runs no more of the node than its hooks.
void PhaseMap::find_hooks() {
  const auto name = [&](uint32_t path) {
    return std::string_view(tables_.names[tables_.paths[path].name]);
  };
  std::vector<bool> own(inside_.size(), false), has_own(inside_.size(), false);
  for (uint32_t i = PathTable::kLost + 1; i < inside_.size(); ++i) {
    const uint32_t parent = tables_.paths[i].parent;
    own[i] = names_node_of(name(parent), name(i));
    if (own[i]) has_own[parent] = true;
  }
  for (uint32_t i = PathTable::kLost + 1; i < inside_.size(); ++i) {
    if (inside_[i] != Inside::kNode) continue;
    const Inside around = inside_[tables_.paths[i].parent];
    const bool leaf = (own[i] && name(i).starts_with(kOfALeaf)) || names_node_of(name(i), kOfALeaf);
    if (has_own[i] || leaf || (!own[i] && !names_autograd_node(name(i)) && around == Inside::kHook))
      inside_[i] = Inside::kHook;
  }
}

void PhaseMap::find_beside() {
  std::vector<uint32_t> decides(own_.size(), kNoIndex);  // by path: the innermost that does
  std::set<std::pair<uint32_t, std::string_view>> by_itself;
  const auto each = [&](auto&& visit) {
    for (uint32_t i = PathTable::kLost + 1; i < own_.size(); ++i) {
      const uint32_t around = decides[tables_.paths[i].parent];
      decides[i] = own_[i] != kNoIndex ? i : around;
      if (own_[i] == kNoIndex)
        beside_[i] = beside_[tables_.paths[i].parent];
      else if (around != kNoIndex)
        visit(i, rules_.rules()[own_[i]], std::pair(around, std::string_view(phase(own_[i]))));
    }
  };
  each([&](uint32_t, const PhaseRules::Rule& rule, const auto& place) {
    if (rule.within.empty()) by_itself.insert(place);
  });
  if (by_itself.empty()) return;
  each([&](uint32_t path, const PhaseRules::Rule& rule, const auto& place) {
    beside_[path] = !rule.within.empty() && by_itself.contains(place);
  });
}

uint32_t PhaseMap::match(Subject subject, std::string_view name, std::string_view within,
                         std::string_view domain, Inside inside) const {
  return known_ != nullptr ? known_->match(subject, name, within, domain, inside)
                           : rules_.match(subject, name, within, domain, inside);
}

// `around`: the rule that holds around the range, or kNoIndex.
uint32_t PhaseMap::match_range(uint32_t path, uint32_t around, Inside inside) const {
  const auto& range = tables_.paths[path];
  const uint32_t found = match(Subject::kRange, tables_.names[range.name],
                               around == kNoIndex ? std::string_view{} : phase(around),
                               tables_.names[range.domain], inside);
  const bool unnamed = around != kNoIndex && phase(around) == kUnnamedPhase;
  const bool decides = found < rules_.user_rules() ||
                       (found != kNoIndex && rules_.rules()[found].within == kUnnamedPhase);
  return unnamed && !decides ? kNoIndex : found;
}

// Of a launch on an autograd thread: names are off for it. In a node, or by an operator, they are
// not.
bool PhaseMap::without_names(uint32_t path) const {
  if (!nodes_ || path == PathTable::kLost) return false;
  for (; path > PathTable::kLost; path = tables_.paths[path].parent)
    if (inside_[path] != Inside::kPhase ||
        tables_.names[tables_.paths[path].name].find("::") != std::string::npos)
      return false;
  return true;
}

// The rule of a path on a thread that belongs to a phase itself: what lies outermost is inside it.
uint32_t PhaseMap::rule_inside(uint32_t path, uint32_t thread_rule) const {
  const uint32_t innermost = path;
  std::vector<uint32_t> levels;
  for (; path > PathTable::kLost; path = tables_.paths[path].parent) levels.push_back(path);
  uint32_t rule = thread_rule;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    const Inside around = inside_[tables_.paths[*level].parent];
    const uint32_t own = match_range(*level, rule, std::max(around, Inside::kNode));
    if (own != kNoIndex) rule = own;
  }
  const bool by_thread = rule == thread_rule && rule >= rules_.user_rules();
  if (by_thread && phase(rule) == "backward" && unnamed_ != kNoIndex && without_names(innermost))
    return unnamed_;
  return rule;
}

uint32_t PhaseMap::rule_of_number(uint32_t rule, NumberTells tells) const {
  if (tells == NumberTells::kNothing) return rule;
  const PhaseRules::Rule& r = rules_.rules()[rule];
  const bool by_range = r.subject == Subject::kRange && rule != rules_.default_rule();
  if (tells == NumberTells::kNameless && by_range) return rule;
  const std::string_view within = !r.within.empty()               ? r.within
                                  : rule != rules_.default_rule() ? r.phase
                                                                  : std::string_view{};
  const uint32_t found = rules_.match(Subject::kNumber, PhaseRules::number_name(tells), within);
  const bool users = rule < rules_.user_rules() && found >= rules_.user_rules();
  return found == kNoIndex || users ? rule : found;
}

uint32_t PhaseMap::rule_of(uint32_t path, uint32_t thread_name, NumberTells tells) {
  tells = told(path, tells);
  const auto [thread, fresh] = threads_.try_emplace(thread_name);
  OnThread& on = thread->second;
  if (fresh) on.rule = match(Subject::kThread, tables_.names[thread_name]);
  if (on.rule == kNoIndex)
    return rule_of_number(inherited_[path] != kNoIndex ? inherited_[path] : rules_.default_rule(),
                          tells);
  const auto [entry, fresh_path] = on.paths.try_emplace(path, kNoIndex);
  if (fresh_path) entry->second = rule_inside(path, on.rule);
  return rule_of_number(entry->second, tells);
}

bool PhaseMap::number_matters(uint32_t path, uint32_t thread_name) {
  const uint32_t rule = rule_of(path, thread_name);
  return rule_of_number(rule, NumberTells::kBetween) != rule ||
         rule_of_number(rule, NumberTells::kUnclear) != rule;
}

uint32_t PhaseMap::rule_of_kernel(uint32_t rule, uint32_t signature) const {
  const uint32_t kernel = kernel_[signature];
  const bool users = rule < rules_.user_rules() && kernel >= rules_.user_rules();
  return kernel == kNoIndex || users ? rule : kernel;
}

}  // namespace flopinj::reduce
