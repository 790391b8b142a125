// Ranges opened with start/end: they belong to the process and cover every thread's launches while
// open.
#pragma once
#include <collector/ranges/range_filter.h>
#include <collector/ranges/range_path_table.h>
#include <collector/ranges/steps.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

namespace flopinj {

inline constexpr uint32_t kMaxProcessRanges = 64;  // open start/end ranges that take part in paths

class ProcessRanges {
 public:
  // `filter` says in which ranges launches are recorded; null: in all. `steps` gets ranges
  // that are training steps; null: none is. Both outlive this.
  explicit ProcessRanges(RangePathTable&, const RangeFilter* filter = nullptr,
                         Steps* steps = nullptr);
  ~ProcessRanges();

  // Never 0; unique in the process. Past kMaxProcessRanges open ones a range takes no part in paths
  // for as long as it lives.
  uint64_t start(StringId domain, std::string_view name) noexcept;
  void end(uint64_t id) noexcept;  // an unknown id is ignored and counted
  uint64_t unknown_ends() const;

  // Changes whenever the path or the process's step does; one load for a thread to see that nothing
  // happened.
  uint32_t version() const { return version_.load(std::memory_order_acquire); }
  PathId path() const;

  Steps* steps() const { return steps_; }
  const RangeFilter* filter() const { return filter_; }
  // Whether the filter chooses launches by the ranges that are open here. Changes with the version.
  bool chosen() const { return chosen_.load(std::memory_order_relaxed); }

 private:
  struct State;
  RangePathTable& table_;
  const RangeFilter* const filter_;
  Steps* const steps_;
  std::atomic<bool> chosen_;
  std::atomic<uint32_t> version_{1};
  std::unique_ptr<State> state_;
};

}  // namespace flopinj
