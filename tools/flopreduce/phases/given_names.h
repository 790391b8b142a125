// Names of scopes that a program knows and its ranges lack: --names FILE. A compiler such as XLA
// makes one kernel of operations of several scopes, and launches it under a name of its own.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj::reduce {

struct TraceTables;

// Bounds of such a file: what goes beyond is an error.
inline constexpr size_t kMaxNamesFileBytes = 64U << 20;
inline constexpr size_t kMaxGivenNames = 1U << 18;
inline constexpr size_t kMaxScopes = 64;  // of one name

class GivenNames {
 public:
  // Lines of fields that are parted by tabs:
  //   instruction MODULE NAME SCOPE...   launches in XLA's range of this instruction
  //   kernel MODULE NAME SCOPE...        launches of the kernel of this name, elsewhere
  // MODULE is XLA's name of the compiled module; "-": any. Scopes: the outermost first. Empty lines
  // and lines that begin with '#' are passed over. Where lines disagree, what their scopes have in
  // common from the outermost on is kept. An error in one line, or nothing; all of the file or
  // nothing is added.
  std::optional<std::string> add_file(const std::string& name, std::string_view text);
  bool any() const { return count_ > 0; }

  struct Applied {
    bool none = false;  // no launch of these tables can have one of the names
    bool full = false;  // a table was too small for all of them
  };
  // Adds the scopes to the tables' paths, in the place of XLA's ranges, and says in
  // TraceTables::given which launches have them. The tables must be joined.
  Applied apply(TraceTables& tables) const;

 private:
  using Scopes = std::vector<std::string>;
  using ByModule = std::map<std::string, Scopes, std::less<>>;
  using Names = std::map<std::string, ByModule, std::less<>>;
  // Of launches in a module; where it is not known (""), what all modules have in common.
  static Scopes scopes_in(const ByModule& modules, std::string_view module);

  Names instructions_, kernels_;
  size_t count_ = 0;
};

}  // namespace flopinj::reduce
