// NVTX ranges as interned paths.
//
// Every launch is tagged with a path id; a path is a node of a tree (parent, domain, name). Pushing
// the same range at the same place gives the same id, so a training loop adds nothing after its
// first step. Names that carry counters are generalised and the table is bounded, by the rules in
// proto/FORMAT.md.
#pragma once
#include <collector/identity/ids.h>
#include <collector/ranges/range_name.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

inline constexpr uint32_t kMaxPaths =
    65'536;  // overflow children not counted: one per path at most
// Different children of one path before further ones are generalised; and how many generalised ones
// it may have before further ones become its overflow child.
inline constexpr uint32_t kMaxChildren = 256;
inline constexpr uint32_t kMaxStrings = 262'144;
inline constexpr uint32_t kMaxStringBytes = 16'384;        // longer strings are cut
inline constexpr uint64_t kMaxAllStringBytes = 64U << 20;  // of all strings together
// Of these, of range names: the rest is for names of kernels, whatever a program calls its ranges.
inline constexpr uint64_t kMaxAllRangeNameBytes = 32U << 20;

enum class RangeKind : uint8_t { kThread = 0, kProcess = 1, kOverflow = 2 };

struct PathDefinition {
  PathId id, parent;
  StringId name, domain;
  RangeKind kind = RangeKind::kThread;
};
struct StringDefinition {
  StringId id;
  std::string value;
};

// Thread-safe; locks. Callers reach it only on range changes, behind a thread-local cache
// (range_stack.h).
class RangePathTable {
 public:
  RangePathTable();
  ~RangePathTable();

  // `key` as parse_range_name() gives it; what is longer than kMaxNameBytes is cut, and counted.
  // Below an overflow path everything is that path. Where there is no memory: the parent, counted
  // as overflow.
  PathId child(PathId parent, StringId domain, std::string_view key, RangeKind) noexcept;
  // Domains, thread and function names. 0 for the empty string, and when the table is full.
  StringId intern_string(std::string_view) noexcept;

  struct Child {
    PathId path;
    // The name the child has in the table, alive as long as the table; null where it is not the key
    // that was asked for (cut, generalised, overflow).
    const std::string* name = nullptr;
  };
  Child find_or_add_child(PathId parent, StringId domain, std::string_view key, RangeKind) noexcept;

  // Definitions with ids above the given one. A path's strings are defined before it is: take the
  // paths first, then the strings, and write the strings first.
  std::vector<PathDefinition> paths_after(PathId) const;
  std::vector<StringDefinition> strings_after(StringId) const;
  uint64_t names_cut() const;          // requests with a name beyond kMaxNameBytes
  uint64_t names_generalised() const;  // requests answered with a generalised name
  uint64_t ranges_overflowed() const;  // requests answered with an overflow path

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopinj
