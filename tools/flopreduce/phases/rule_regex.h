// The regular expression of a rule, compiled where a name is first held against it: dozens of them
// take milliseconds, and most recordings get to a few.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace flopinj::reduce {

// RE2's syntax; any case. RE2 matches in time linear in the name, and its memory is bounded. Any
// thread may use it.
class RuleRegex {
 public:
  explicit RuleRegex(std::string pattern);
  ~RuleRegex();
  RuleRegex(const RuleRegex&) = delete;
  RuleRegex& operator=(const RuleRegex&) = delete;

  // Empty: the pattern is a regular expression.
  std::string error() const;
  // The pattern must be a regular expression.
  bool found_in(std::string_view name) const;

 private:
  const re2::RE2& compiled() const;

  const std::string pattern_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<const re2::RE2> regex_;
};

}  // namespace flopinj::reduce
