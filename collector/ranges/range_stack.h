// One thread's push/pop ranges over all domains. Used only by its own thread. Pushing a range that
// was pushed at the same place before takes no lock and allocates nothing.
#pragma once
#include <collector/ranges/process_ranges.h>
#include <collector/ranges/range_path_table.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flopinj {

inline constexpr uint32_t kMaxDepth = 128;  // deeper pushes are counted and balanced, not recorded

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
  // The training step that a launch is in now; 0: none. After path(), which sees to what changed.
  uint32_t step() const { return step_; }
  // Whether launches are recorded in the ranges that are open now (ProcessRanges::filter()).
  bool chosen() noexcept {
    if (process_.version() != seen_version_) rebase();
    if (std::exchange(stale_, false)) choose();
    return chosen_;
  }
  // Pops that found no range open. Any thread may read it.
  uint64_t too_deep() const { return too_deep_.load(std::memory_order_relaxed); }
  uint64_t unmatched_pops() const { return unmatched_pops_.load(std::memory_order_relaxed); }
  // Of the innermost range that has one; evaluate_function's is that of its node, once it has run.
  uint64_t sequence_plus_1() const { return sequence_; }

 private:
  // Slots stay when a range is closed, so that their strings' memory is used again: at most
  // kMaxDepth x kMaxScannedBytes, 8 MiB, where all are as long as can be.
  struct Open {
    StringId domain;
    std::string key;
    uint64_t sequence_plus_1 = 0;
    bool evaluates_node = false;
    bool in_node = false;  // or evaluates one
    uint32_t step = 0;     // that it is; 0: none
    PathId path;
  };
  struct Child {
    PathId path;
    bool is_step = false;  // by its name
  };
  struct ChildCache;

  Child child(PathId parent, StringId domain, std::string_view key) noexcept;
  PathId path_below(size_t depth) const { return depth == 0 ? base_ : open_[depth - 1].path; }
  void rebuild(size_t from) noexcept;  // the paths of open_[from..depth_)
  void rebase() noexcept;
  void choose() noexcept;
  uint32_t level(StringId domain) const noexcept;

  RangePathTable& table_;
  const ProcessRanges& process_;
  uint32_t seen_version_ = 0;
  std::atomic<uint64_t> unmatched_pops_{0}, too_deep_{0};
  uint64_t sequence_ = 0;
  uint32_t own_step_ = 0;      // of this thread
  uint32_t process_step_ = 0;  // as of seen_version_
  uint32_t step_ = 0;
  bool stale_ = true;  // chosen_ is of other open ranges
  bool chosen_ = false;
  PathId base_, top_;
  size_t depth_ = 0;  // of open_, how many are open
  std::vector<Open> open_;
  // Pushes that are only counted, by the domain's string: at most kMaxStrings domains. While a
  // domain has any, its further pushes are too: they are popped first.
  std::unordered_map<uint32_t, uint32_t> beyond_;
  std::unique_ptr<ChildCache> cache_;
};

}  // namespace flopinj
