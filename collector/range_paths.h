// NVTX ranges: interned paths, and the stacks of threads and of the process.
//
// Every launch is tagged with a path id; a path is a node of a tree (parent, domain, name). Pushing
// the same range at the same place gives the same id, so a training loop adds nothing after its
// first step. Names that carry counters are generalised and the table is bounded, by the rules in
// proto/FORMAT.md.
#pragma once
#include <collector/ids.h>
#include <collector/range_names.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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
inline constexpr uint32_t kMaxDepth = 128;  // deeper pushes are counted and balanced, not recorded
inline constexpr uint32_t kMaxProcessRanges = 64;  // open start/end ranges that take part in paths

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
// (RangeStack).
class RangePathTable {
 public:
  RangePathTable();
  ~RangePathTable();
  RangePathTable(const RangePathTable&) = delete;
  RangePathTable& operator=(const RangePathTable&) = delete;

  // `key` as parse_range_name() gives it; what is longer than kMaxNameBytes is cut, and counted.
  // Below an overflow path everything is that path. Where there is no memory: the parent, counted as
  // overflow.
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

// Ranges opened with start/end: they belong to the process and cover every thread's launches while
// open.
class ProcessRanges {
 public:
  explicit ProcessRanges(RangePathTable&);
  ~ProcessRanges();

  // Never 0; unique in the process. Past kMaxProcessRanges open ones a range takes no part in paths
  // for as long as it lives.
  uint64_t start(StringId domain, std::string_view name) noexcept;
  void end(uint64_t id) noexcept;  // an unknown id is ignored and counted
  uint64_t unknown_ends() const;

  // Changes whenever the path does; one load for a thread to see that nothing happened.
  uint32_t version() const { return version_.load(std::memory_order_acquire); }
  PathId path() const;

 private:
  struct State;
  void publish() noexcept;
  RangePathTable& table_;
  std::atomic<uint32_t> version_{1};
  std::unique_ptr<State> state_;
};

// One thread's push/pop ranges over all domains. Used by its own thread alone. Pushing a range that
// was pushed at the same place before takes no lock and allocates nothing.
class RangeStack {
 public:
  RangeStack(RangePathTable&, const ProcessRanges&);
  ~RangeStack();

  // NVTX's result: the level before, counted per domain. Past kMaxDepth open ranges a push is only
  // counted, so that its pop finds it.
  int push(StringId domain, std::string_view name) noexcept;
  int pop(StringId domain) noexcept;  // the level after; negative when that domain has none open

  // What tags a launch now: process ranges first, then this thread's, in the order they were
  // pushed.
  PathId path() noexcept {
    if (process_.version() != seen_version_) rebase();
    return top_;
  }
  uint64_t sequence_plus_1() const { return sequence_; }  // of the innermost range that has one

 private:
  // Slots stay when a range is closed, so that their strings' memory is used again: at most
  // kMaxDepth x kMaxScannedBytes, 8 MiB, where all are as long as can be.
  struct Open {
    StringId domain;
    std::string key;
    uint64_t sequence_plus_1 = 0;
    PathId path;
  };
  struct ChildCache;

  PathId child(PathId parent, StringId domain, std::string_view key) noexcept;
  PathId path_below(size_t depth) const { return depth == 0 ? base_ : open_[depth - 1].path; }
  void rebuild(size_t from) noexcept;  // the paths of open_[from..depth_)
  void rebase() noexcept;
  uint32_t* beyond(StringId domain) noexcept;
  uint32_t level(StringId domain) const noexcept;

  RangePathTable& table_;
  const ProcessRanges& process_;
  uint32_t seen_version_ = 0;
  uint64_t sequence_ = 0;
  PathId base_, top_;
  size_t depth_ = 0;  // of open_, how many are open
  std::vector<Open> open_;
  // Pushes that are only counted, per domain. While a domain has any, its further pushes are too:
  // they are popped first.
  std::vector<std::pair<StringId, uint32_t>> beyond_;
  std::unique_ptr<ChildCache> cache_;
};

}  // namespace flopinj
