// One thread's push/pop ranges over all domains. Used only by its own thread. Pushing a range that
// was pushed at the same place before takes no lock and allocates nothing.
#pragma once
#include <collector/base/host_clock.h>
#include <collector/identity/launch_record.h>
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
// Ranges with fewer around them are timed, for what a thread does between launches, unless they are
// operators: to look at a clock costs a third of a push.
inline constexpr size_t kTimedDepth = 3;
inline constexpr uint64_t kLeastPauseTicks = 1U << 18;  // about 100 us where a tick is a cycle

class RangeStack {
 public:
  RangeStack(RangePathTable&, const ProcessRanges&);
  ~RangeStack();

  // NVTX's result: the level before, counted per domain. Past kMaxDepth open ranges a push is only
  // counted, so that its pop finds it.
  int push(StringId domain, std::string_view name) noexcept;
  int pop(StringId domain) noexcept;  // the level after; negative when that domain has none open

  // The same without levels, in the default domain, of a range whose caller knows its name by a
  // hash. False: the hash is not known at this place, and nothing was done.
  bool push_known(uint64_t hash, uint64_t sequence_plus_1) noexcept;
  // `name` has no fields that change with every call; its hash is known at this place from now on.
  void push_named(uint64_t hash, uint64_t sequence_plus_1, std::string_view name) noexcept;
  void pop_known() noexcept;

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
  // Whether the outermost operator that is open was entered since the last launch that was written.
  bool call_begins() const { return call_begins_ && in_call(); }
  void launch_written() { call_begins_ = false; }

  // The thread did something at this time (host_clock.h): it launches, or a timed range begins or
  // ends. Until then it was in the timed ranges that are open.
  void note(uint64_t ticks) noexcept {
    if (last_ticks_ != 0 && ticks > last_ticks_ + kLeastPauseTicks) [[unlikely]]
      note_pause(ticks);
    last_ticks_ = ticks;
  }
  const Pause& pause() const { return pause_; }
  void forget_pause() { pause_ = {}; }
  // Of the innermost range that has one; evaluate_function's is that of its node, once it has run.
  uint64_t sequence_plus_1() const { return sequence_; }

 private:
  // Slots stay when a range is closed, so that their strings' memory is used again: at most
  // kMaxDepth x kMaxScannedBytes, 8 MiB, where all are as long as can be.
  struct Open {
    StringId domain;
    const std::string* known = nullptr;  // the table's own copy of its key; null: `text` is the key
    std::string text;
    uint64_t sequence_plus_1 = 0;
    bool evaluates_node = false;
    bool in_node = false;  // or evaluates one
    bool in_call = false;  // or is an operator
    bool timed = false;    // as are all below it
    uint32_t step = 0;     // that it is; 0: none
    PathId path;

    const std::string& key() const { return known != nullptr ? *known : text; }
  };
  struct Child {
    PathId path;
    bool is_step = false;  // by its name
    bool is_operator = false;
    const std::string* name = nullptr;  // RangePathTable::Child::name
  };
  struct ChildCache;
  struct KnownCache;

  Child child(PathId parent, StringId domain, std::string_view key) noexcept;
  PathId step_path(PathId parent, StringId domain, std::string_view key) noexcept;
  // True where another push in `domain` can only be counted, which it has been.
  bool only_counted(StringId domain);
  // The slot of the range that is to be pushed.
  Open& next_slot();
  // Whether a range pushed now is inside of an autograd node, or of what evaluates one.
  bool in_node() const { return depth_ > 0 && open_[depth_ - 1].in_node; }
  bool in_call() const { return depth_ > 0 && open_[depth_ - 1].in_call; }
  void mark_if_own_number(Open& slot) const;
  void enter(Open& slot, StringId domain, const Child& child) noexcept;
  void leave(size_t at) noexcept;
  bool pop_counted(StringId domain);
  void note_pause(uint64_t ticks) noexcept;
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
  uint64_t last_ticks_ = 0;
  Pause pause_;
  bool call_begins_ = false;
  uint32_t own_step_ = 0;      // of this thread
  uint32_t process_step_ = 0;  // as of seen_version_
  uint32_t step_ = 0;
  bool stale_ = true;  // chosen_ is of other open ranges
  bool chosen_ = false;
  PathId base_, top_;
  size_t depth_ = 0;  // of open_, how many are open
  size_t timed_ = 0;  // of these, the first ones
  std::vector<Open> open_;
  // Pushes that are only counted, by the domain's string: at most kMaxStrings domains. While a
  // domain has any, its further pushes are too: they are popped first.
  std::unordered_map<uint32_t, uint32_t> beyond_;
  std::unique_ptr<ChildCache> cache_;
  std::unique_ptr<KnownCache> known_;
};

}  // namespace flopinj
