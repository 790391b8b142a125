// Where windows are closed and how many launches they hold, learned from the first windows.
//
// CUPTI does not document at which site of a launch, and on which thread, a window may be closed.
// The first window of a process is therefore a trial of kTrialRows launches. As many ranges as
// launches prove the site. Fewer ranges, or a refusal to close, and the next site is tried.
//
// CUPTI may also count ranges that no launch made (memory operations, the driver's own kernels).
// After such a window, windows hold one launch each for a while: nothing can be between its ENTER
// and its EXIT. The while grows eightfold with each further disagreement; the third is for good.
//
// No kernel is blamed for either: the launches are measured again. Only a window of one launch that
// disagrees is held against its kernel.
//
// Threads: any. site(), most_rows() and closes_from_outside() take no lock.
#pragma once
#include <collector/identity/mutex.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flopinj {

enum class CloseSite : uint8_t {
  kExit,       // EXIT of the launch that fills or finishes the window
  kNextEnter,  // ENTER of the launch behind it
  kOpener,     // the same, only on the thread that opened the window
};

inline constexpr std::array<std::string_view, 3> kCloseSiteNames{"exit", "enter", "own"};
std::optional<CloseSite> parse_close_site(std::string_view name);

// Why a window is closed, and from where.
enum class CloseCause : uint8_t {
  kFinished,  // at the policy's site
  kEarly,     // before a launch that must not be inside, on the thread of that launch
  kOutside    // by a thread that launches nothing
};

class WindowPolicy {
 public:
  static constexpr uint32_t kTrialRows = 3;
  static constexpr uint32_t kFirstSingles = 8;  // windows of one launch after a disagreement
  static constexpr uint32_t kMostDisagreements = 3;

  // `chosen`: no other site is tried. `most_rows`: of a window where nothing is known against it.
  WindowPolicy(std::optional<CloseSite> chosen, uint32_t most_rows)
      : site_(chosen.value_or(CloseSite::kExit)),
        most_rows_(kTrialRows),
        chosen_(chosen.has_value()),
        full_rows_(most_rows) {}

  CloseSite site() const noexcept { return site_.load(std::memory_order_relaxed); }
  uint32_t most_rows() const noexcept { return most_rows_.load(std::memory_order_relaxed); }
  // Whether a thread that launches nothing may close a window.
  bool closes_from_outside() const noexcept {
    return site() != CloseSite::kOpener && outside_.load(std::memory_order_relaxed);
  }

  enum class Verdict : uint8_t {
    kAgain,    // the launches are measured again, in windows as the policy is now
    kBlame,    // the launches' kernels are to blame, or CUPTI where it refused
    kGiveUp,   // no site works: nothing can be measured in this process
    kLeftOpen  // the window stays open until a thread that launches closes it
  };
  // Outcomes of closed windows: rows and ranges agreed, did not, or CUPTI refused to close. `news`
  // is a line for the trace where the policy changed, else empty.
  void agreed(CloseCause);
  Verdict disagreed(CloseCause, size_t rows, size_t ranges, std::string& news);
  Verdict refused(CloseCause, std::string& news);

 private:
  bool next_site(std::string& news) FLOPINJ_REQUIRES(mutex_);
  void single_launches(std::string& news) FLOPINJ_REQUIRES(mutex_);

  std::atomic<CloseSite> site_;
  std::atomic<uint32_t> most_rows_;
  std::atomic<bool> outside_{true};
  const bool chosen_;
  const uint32_t full_rows_;
  Mutex mutex_;
  bool proven_ FLOPINJ_GUARDED_BY(mutex_) = false;
  uint32_t disagreements_ FLOPINJ_GUARDED_BY(mutex_) = 0;
  // 0: windows are not limited to one launch.
  uint32_t singles_left_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
