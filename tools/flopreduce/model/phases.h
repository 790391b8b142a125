// Which part of training a launch belongs to, by a table of rules that the user can see and put
// others in front of.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/kernels.h"
#include "model/names.h"

namespace flopinj::reduce {

// The innermost range whose name a rule matches decides. If no range decides, the thread's name
// does; else "other".
class PhaseRules {
 public:
  enum class Match : uint8_t {
    kWord,    // the pattern is a whole word of the name, any case; "_", "-", "." and so on separate
              // words
    kPrefix,  // the name starts with the pattern
    kAutogradNode,  // the name's first part ends in the pattern and a number:
                    // "ConvolutionBackward0"
    kRegex,         // the pattern is found in the name, any case
    kDefault,       // nothing else matched
  };
  struct Rule {
    std::string phase;
    std::string pattern;
    Match match = Match::kWord;
    bool on_thread = false;
    // Words of the same group that speak for different phases cancel out ("forward-backward"). 0:
    // no group.
    uint8_t group = 0;
    std::shared_ptr<const std::regex> regex;
  };

  PhaseRules();
  // Puts "NAME=REGEX" in front of the built-in rules, after those added before. The error in one
  // line, or nothing.
  std::optional<std::string> add_user_rule(const std::string& text);

  const std::vector<Rule>& rules() const { return rules_; }
  uint32_t default_rule() const { return static_cast<uint32_t>(rules_.size() - 1); }
  // The rule that a name alone decides, or kNoIndex.
  uint32_t match_range(std::string_view name) const { return match(name, false); }
  uint32_t match_thread(std::string_view name) const { return match(name, true); }
  static std::string describe(const Rule& rule);

 private:
  uint32_t match(std::string_view name, bool thread) const;
  std::vector<Rule> rules_;
  size_t user_rules_ = 0;
};

// Rules applied to whole paths, each path and thread name worked out once.
class PhaseMap {
 public:
  PhaseMap(const PhaseRules& rules, const NamePool& names, const PathTable& paths);
  // Index into PhaseRules::rules().
  uint32_t rule_of(uint32_t path, uint32_t thread_name);
  // The rule that this range's own name decides, or kNoIndex; and the one decided at or above it.
  uint32_t own_rule(uint32_t path) const { return own_[path]; }
  uint32_t path_rule(uint32_t path) const { return inherited_[path]; }

 private:
  const PhaseRules& rules_;
  const NamePool& names_;
  std::vector<uint32_t> own_;
  std::vector<uint32_t> inherited_;
  std::unordered_map<uint32_t, uint32_t> thread_rule_;
};

}  // namespace flopinj::reduce
