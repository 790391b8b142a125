#include <injector/launch_choice.h>
#include <injector/process/edge.h>

namespace flopinj {

LaunchChoice::LaunchChoice(const Settings& settings, bool ends)
    : by_range_(!settings.nvtx_include.empty()),
      counted_(settings.launch_skip != 0 || settings.launch_count != 0),
      any_(ends || by_range_ || counted_ || !settings.kernel_name.empty()),
      count_(settings.launch_count),
      first_(settings.launch_skip),
      end_(count_ == 0 ? kNever : first_ + count_) {}

LaunchTurn LaunchChoice::take(RangeStack& ranges) noexcept {
  if (over()) return LaunchTurn::kAfter;
  if (by_range_ && !ranges.chosen()) return LaunchTurn::kOther;
  if (!counted_) return LaunchTurn::kFree;
  const uint64_t turn = next_.fetch_add(1, std::memory_order_relaxed);
  if (turn < first_.load(std::memory_order_relaxed)) return LaunchTurn::kSkipped;
  return turn < end_.load(std::memory_order_relaxed) ? LaunchTurn::kRecorded : LaunchTurn::kAfter;
}

void LaunchChoice::failed(LaunchTurn turn) noexcept {
  if (!counted_ || (turn != LaunchTurn::kSkipped && turn != LaunchTurn::kRecorded)) return;
  if (count_ != 0) end_.fetch_add(1, std::memory_order_relaxed);
  if (turn == LaunchTurn::kSkipped) first_.fetch_add(1, std::memory_order_relaxed);
}

void LaunchChoice::count_one() noexcept {
  if (recorded_.fetch_add(1, std::memory_order_relaxed) + 1 == count_) end();
}

void LaunchChoice::end() noexcept {
  over_.store(true, std::memory_order_relaxed);
  end_recording_soon();
}

}  // namespace flopinj
