// NVTX ranges: interned paths, and the stacks of threads and of the process.
//
// Every launch is tagged with a path id; a path is a node of a tree (parent, domain, name). Pushing
// the same range at the same place gives the same id, so a training loop adds nothing after its
// first step. Names that carry counters are generalised and the table is bounded, by the rules in
// proto/FORMAT.md.
#pragma once
#include <collector/ids.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

inline constexpr uint32_t kMaxPaths = 65'536;
inline constexpr uint32_t kMaxChildren = 256;  // of one path, before names below it are generalised
inline constexpr uint32_t kMaxNameBytes = 1'024;  // longer names are cut
inline constexpr uint32_t kMaxDepth = 128;  // deeper pushes are counted and balanced, not recorded
inline constexpr uint32_t kMaxProcessRanges = 64;  // open start/end ranges that take part in paths

enum class RangeKind : uint8_t { kThread = 0, kProcess = 1, kOverflow = 2 };

// A range name as it is interned, and what was cut out of it.
struct RangeName {
  std::string key;               // name without seq and op_id
  uint64_t sequence_plus_1 = 0;  // autograd sequence number + 1; 0 where the name has none
};
RangeName parse_range_name(
    std::string_view name);  // PyTorch's emit_nvtx form, else the name as it is, cut
std::string generalise(std::string_view name);  // digit runs become '#', 0x numbers "0x#"

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

  PathId child(PathId parent, StringId domain, std::string_view key, RangeKind);
  StringId intern_string(
      std::string_view);  // domains, thread and function names; bounded, 0 when full

  std::vector<PathDefinition> paths_after(PathId) const;
  std::vector<StringDefinition> strings_after(StringId) const;
  uint64_t names_generalised() const;
  uint64_t ranges_overflowed() const;

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

  uint64_t start(StringId domain, std::string_view name);  // never 0; unique in the process
  void end(uint64_t id);                                   // an unknown id is ignored and counted

  // Changes whenever the path does; one relaxed load for a thread to see that nothing happened.
  uint32_t version() const { return version_.load(std::memory_order_acquire); }
  PathId path() const;

 private:
  struct State;
  RangePathTable& table_;
  std::atomic<uint32_t> version_{1};
  std::unique_ptr<State> state_;
};

// One thread's push/pop ranges over all domains. Used by its own thread alone.
class RangeStack {
 public:
  RangeStack(RangePathTable&, const ProcessRanges&);

  int push(StringId domain,
           std::string_view name);  // NVTX's result: the level before, counted per domain
  int pop(StringId domain);         // the level after; negative when that domain has none open

  // What tags a launch now: process ranges first, then this thread's, in the order they were
  // pushed.
  PathId path();
  uint64_t sequence_plus_1() const { return sequence_; }  // of the innermost range that has one

 private:
  struct Open {
    StringId domain;
    std::string key;
    uint64_t sequence;
    PathId path;
  };
  void rebuild(size_t from);

  RangePathTable& table_;
  const ProcessRanges& process_;
  uint32_t seen_version_ = 0;
  uint64_t sequence_ = 0;
  PathId base_, top_;
  std::vector<Open> open_;
  std::vector<std::pair<StringId, uint32_t>> beyond_;  // pushes past kMaxDepth, per domain
};

}  // namespace flopinj
