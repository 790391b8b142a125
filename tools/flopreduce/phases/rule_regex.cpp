#include "phases/rule_regex.h"

#include <re2/re2.h>

#include <utility>

namespace flopinj::reduce {

RuleRegex::RuleRegex(std::string pattern) : pattern_(std::move(pattern)) {}
RuleRegex::~RuleRegex() = default;

const re2::RE2& RuleRegex::compiled() const {
  std::call_once(once_, [this] {
    re2::RE2::Options options;
    options.set_case_sensitive(false);
    options.set_log_errors(false);
    options.set_encoding(re2::RE2::Options::EncodingLatin1);  // names may hold any bytes
    options.set_max_mem(1 << 20);
    regex_ = std::make_unique<const re2::RE2>(pattern_, options);
  });
  return *regex_;
}

std::string RuleRegex::error() const {
  const re2::RE2& regex = compiled();
  return regex.ok() ? "" : "not a regular expression: " + regex.error();
}

bool RuleRegex::found_in(std::string_view name) const {
  return re2::RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), compiled());
}

}  // namespace flopinj::reduce
