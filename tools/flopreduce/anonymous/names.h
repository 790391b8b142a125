// What names become in a trace that is given to others. A name of a public framework or library
// stays; of others each word becomes a pseudonym, but for words that figures are told by: those of
// the rules for phases (forward, loss), of gradients (dgrad), sizes and tiles.
//
// Equal words have equal pseudonyms under one key, so a function and its gradient keep what joins
// them, and traces that were made anonymous with one key can be compared.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "anonymous/keyed_hash.h"

namespace flopinj::reduce {

class AnonymousNames {
 public:
  explicit AnonymousNames(KeyedHash hash);
  // Of NVTX ranges and their domains, and of threads.
  std::string range(std::string_view name) const;
  std::string kernel(std::string_view name) const;                   // mangled or not
  std::string other(const char* kind, std::string_view name) const;  // "host-gkdamcobfe"
  const KeyedHash& hash() const { return hash_; }

 private:
  std::string words(std::string_view name) const;
  std::string pseudonym(std::string_view word) const;

  KeyedHash hash_;
  std::set<std::string, std::less<>> known_;  // words in small letters
};

}  // namespace flopinj::reduce
