// What names become in a trace that is given to others: identifier by identifier, what figures are
// made by stays (operators with a formula and their arguments, words of phase rules, what gradients
// and number formats are known by), and of all else each word becomes a pseudonym. Digits, and the
// sizes of tiles such as 128x64, stay where figures read them.
//
// Equal words have equal pseudonyms under one key, so a function and its gradient keep what joins
// them, and traces that were made anonymous with one key can be compared.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace flopinj::reduce {

// SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012): who does not know
// the key cannot find out by trial which text a hash is of.
class KeyedHash {
 public:
  using Key = std::array<uint64_t, 2>;
  explicit KeyedHash(Key key) : key_(key) {}
  uint64_t of(std::string_view text) const;

 private:
  Key key_;
};

class AnonymousNames {
 public:
  explicit AnonymousNames(KeyedHash hash) : hash_(hash) {}
  // Of a kernel (mangled or not), a range, a domain, a thread: any text with names in it.
  std::string name(std::string_view text) const;
  // All of it: "host-gkdamcobfexy".
  std::string other(const char* kind, std::string_view text) const;
  const KeyedHash& hash() const { return hash_; }

 private:
  std::string identifier(std::string_view text, bool sizes) const;
  std::string word(std::string_view text, bool sizes) const;

  KeyedHash hash_;
};

// A C++ name mangled by the rules of the Itanium ABI with each of its identifiers replaced,
// wherever it is: in template arguments, around lambdas, as a tag or a vendor's type; and with it
// the length before it. Nothing for a name that the demangler does not read to its end, or that
// holds text in another form.
std::optional<std::string> replace_identifiers(
    std::string_view mangled, const std::function<std::string(std::string_view)>& replace);

}  // namespace flopinj::reduce
