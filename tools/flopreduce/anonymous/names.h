// What names become in a trace that is given to others: identifier by identifier, what a list
// allows stays (public_names.txt and the words of phase rules), and of all else each word becomes a
// pseudonym. Digits, and sizes of tiles such as 128x64, stay where figures read them.
//
// Equal words have equal pseudonyms under one key, so a function and its gradient keep what joins
// them, and traces that were made anonymous with one key can be compared.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "anonymous/keyed_hash.h"

namespace flopinj::reduce {

class AnonymousNames {
 public:
  explicit AnonymousNames(KeyedHash hash) : hash_(hash) {}
  // Of a kernel (mangled or not), a range, a domain, a thread: any text with names in it.
  std::string name(std::string_view text) const;
  // All of it: "host-gkdamcobfexy".
  std::string other(const char* kind, std::string_view text) const;
  const KeyedHash& hash() const { return hash_; }

 private:
  std::optional<std::string> mangled(std::string_view text) const;
  std::string identifier(std::string_view text, bool sizes) const;
  std::string word(std::string_view text, bool sizes) const;

  KeyedHash hash_;
};

}  // namespace flopinj::reduce
