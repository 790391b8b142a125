// Which part of training a launch belongs to, by a table of rules that the user can see and put
// others in front of.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phases/forward_numbers.h"
#include "phases/rule_regex.h"
#include "tables/id_map.h"

namespace flopinj::reduce {

struct TraceTables;

// The "phase" of rules that decide nothing: a name that they match is as if no rule matched it.
inline constexpr std::string_view kNoPhase = "-";

// The phase of launches at which names were off: what they are of is not known, and what rests on
// names is not of them. Inside of its ranges only user's rules, those that name this phase, and
// kernels' names decide.
inline constexpr std::string_view kUnnamedPhase = "unnamed";

// Order decides within one name. Of a launch's ranges the innermost that a rule matches decides; if
// none does, the thread's name; if that does not, the launch's sequence number; else "other". A
// rule on the kernel's name goes before all of them, unless a user's rule decided.
class PhaseRules {
 public:
  enum class Subject : uint8_t { kRange, kThread, kKernel, kNumber };
  enum class Match : uint8_t {
    kWord,      // a whole word of the name, any case; "_", "-", "." and so on separate words
    kLoneWord,  // the same, but lone words of different phases cancel out ("forward-backward")
    kPrefix,    // the name starts with the pattern
    kContains,  // the pattern is somewhere in the name, any case
    kNode,      // the name's first part ends in the pattern and a number: "ConvolutionBackward0"
    kRegex,     // RE2 syntax: found in the name, any case
    kIs,        // what a sequence number shows: "between", "unclear", "again"
    kDefault,   // nothing else matched
  };
  // Where in a phase. Each of them is inside of the one before.
  enum class Inside : uint8_t {
    kPhase,
    // Inside an autograd node, or on a thread of its phase. Of recordings without any, where ranges
    // by hand are all that there is: anywhere.
    kNode,
    kHook,  // inside an autograd node, and no part of what it computes: in a hook
  };
  struct Rule {
    std::string phase;
    Subject subject = Subject::kRange;
    // Only inside a range, or on a thread, that belongs to this phase; empty: anywhere. Of a
    // number, empty: where nothing else decides.
    std::string within;
    // Of a range with `within`.
    Inside inside = Inside::kPhase;
    // Only ranges of the NVTX domain of this name, any case; empty: of any domain.
    std::string domain;
    Match match = Match::kWord;
    std::string pattern;
    std::shared_ptr<const RuleRegex> regex;  // of Match::kRegex
  };

  PhaseRules();

  // User's rules go in front of the built-in ones, after those added before. An error in one line,
  // or nothing. "NAME=REGEX", on range names:
  std::optional<std::string> add_user_rule(const std::string& text);
  // A rule file: lines as built_in() explains them. `name` is for messages. All of it or nothing is
  // added.
  std::optional<std::string> add_rule_file(const std::string& name, std::string_view text);

  // A line's rules, one for each of its patterns; none for a comment or an empty line. `error` is
  // set where it is neither. Whether a regular expression is one is not looked at.
  static std::vector<Rule> parse_line(std::string_view line, std::string& error);
  // The rule as a line of a rule file.
  static std::string line_of(const Rule& rule);
  // The built-in rules as a rule file, with comments: built_in.rules.
  static std::string_view built_in();

  const std::vector<Rule>& rules() const { return *rules_; }
  uint32_t user_rules() const { return user_rules_; }
  uint32_t default_rule() const { return static_cast<uint32_t>(rules_->size() - 1); }
  // What rules call it; empty for kNothing.
  static std::string_view number_name(NumberTells tells);
  // The rule that a name by itself decides where the phase around it is `within`, or kNoIndex.
  // `domain`: of a range, the name of its NVTX domain; empty for the default one.
  uint32_t match(Subject subject, std::string_view name, std::string_view within = {},
                 std::string_view domain = {}, Inside inside = Inside::kNode) const;
  static std::string describe(const Rule& rule);
  // Whether launches of this rule may have run forward, and their sequence numbers do not say.
  bool leaves_unclear(uint32_t rule) const;

 private:
  // The rules of a file's lines. The error in one of them, or nothing; `error_of`: of a rule.
  static std::optional<std::string> read_lines(
      const std::string& name, std::string_view text, size_t most,
      const std::function<std::string(const Rule&)>& error_of, std::vector<Rule>& rules);
  void add_in_front(std::vector<Rule> rules);

  std::shared_ptr<const std::vector<Rule>> rules_;  // many options have the built-in ones
  uint32_t user_rules_ = 0;
};

// What rules say of names, kept from one recording to the next: ranks of a job have the same names.
// Of one thread.
class KnownMatches {
 public:
  explicit KnownMatches(const PhaseRules& rules) : rules_(rules) {}
  // As PhaseRules::match().
  uint32_t match(PhaseRules::Subject subject, std::string_view name, std::string_view within,
                 std::string_view domain, PhaseRules::Inside inside);

 private:
  static constexpr size_t kMostBytes = 16U << 20;  // beyond, all is forgotten

  const PhaseRules& rules_;
  std::unordered_map<std::string, uint32_t> rule_;
  std::string key_;
  size_t bytes_ = 0;
};

// Bounds of rule files: what goes beyond is an error.
inline constexpr size_t kMaxRules = 4096;
inline constexpr size_t kMaxRuleFileBytes = 1U << 20;
inline constexpr size_t kMaxPatternBytes = 1024;

// Rules applied to whole paths, each path, thread name and kernel name worked out once.
class PhaseMap {
 public:
  // The tables must be joined. `known` of these rules may be given; all must outlive the map.
  PhaseMap(const PhaseRules& rules, const TraceTables& tables, KnownMatches* known = nullptr);
  // What passes/sequence/own_numbers.h found out of operators inside of nodes, by path; empty:
  // nothing.
  void use_again(std::vector<bool> again) { again_ = std::move(again); }
  // What is known of a launch: by its path, else by its number, else by what lies beside it.
  NumberTells told(uint32_t path, NumberTells tells) const {
    if (path < again_.size() && again_[path]) return NumberTells::kAgain;
    const bool beside = path < beside_.size() && beside_[path];
    return tells == NumberTells::kNothing && beside ? NumberTells::kUnclear : tells;
  }
  // Index into PhaseRules::rules(), whatever the kernel.
  uint32_t rule_of(uint32_t path, uint32_t thread_name, NumberTells tells = NumberTells::kNothing);
  // Whether a number's rule may decide for launches in this path.
  bool number_matters(uint32_t path, uint32_t thread_name);
  // The same for a launch of a kernel: `rule` is what rule_of() said.
  uint32_t rule_of_kernel(uint32_t rule, uint32_t signature) const;
  // The rule that the kernel's name decides, or kNoIndex.
  uint32_t kernel_rule(uint32_t signature) const { return kernel_[signature]; }
  // The rule that this range's own name decides, or kNoIndex; and the one decided at or above it.
  uint32_t own_rule(uint32_t path) const { return own_[path]; }
  uint32_t path_rule(uint32_t path) const { return inherited_[path]; }

 private:
  struct OnThread {
    uint32_t rule = kNoIndex;  // of the thread's name
    std::unordered_map<uint32_t, uint32_t> paths;
  };
  const std::string& phase(uint32_t rule) const { return rules_.rules()[rule].phase; }
  using Inside = PhaseRules::Inside;
  uint32_t match(PhaseRules::Subject subject, std::string_view name, std::string_view within = {},
                 std::string_view domain = {}, Inside inside = Inside::kNode) const;
  bool find_nodes();
  void find_hooks();
  bool without_names(uint32_t path) const;
  uint32_t match_range(uint32_t path, uint32_t around, Inside inside) const;
  void find_beside();
  uint32_t rule_of_number(uint32_t rule, NumberTells tells) const;
  uint32_t rule_inside(uint32_t path, uint32_t thread_rule) const;

  const PhaseRules& rules_;
  const TraceTables& tables_;
  KnownMatches* known_;
  std::vector<bool> again_;
  std::vector<Inside> inside_;  // by path: of what is directly inside of it
  bool nodes_ = false;          // there are any autograd nodes
  uint32_t unnamed_;            // the rule of launches that are without_names()
  bool autograd_;               // nodes or their threads are in the recording
  std::vector<uint32_t> own_;
  std::vector<uint32_t> inherited_;
  // By path: a name decided that tells something only inside of a phase, beside a range that says
  // the same by itself. In a step whose closure has a forward range, other layers may be a
  // teacher's.
  std::vector<bool> beside_;
  std::vector<uint32_t> kernel_;  // by signature
  std::unordered_map<uint32_t, OnThread> threads_;
};

}  // namespace flopinj::reduce
