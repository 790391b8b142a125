#include <collector/schedule/window_policy.h>

#include <algorithm>
#include <array>
#include <limits>

namespace flopinj {
namespace {

// By CloseSite, in the order in which sites are tried.
constexpr std::array<std::string_view, kCloseSiteNames.size()> kWords{
    "at EXIT of their last launch", "at ENTER of the launch behind them",
    "at ENTER of the next launch of the thread that opened them"};
constexpr uint32_t kForGood = std::numeric_limits<uint32_t>::max();

}  // namespace

std::optional<CloseSite> parse_close_site(std::string_view name) {
  const auto at = std::ranges::find(kCloseSiteNames, name);
  if (at == kCloseSiteNames.end()) return std::nullopt;
  return static_cast<CloseSite>(at - kCloseSiteNames.begin());
}

void WindowPolicy::agreed(CloseCause cause) {
  const MutexLock lock(mutex_);
  if (cause == CloseCause::kFinished) proven_ = true;
  if (!proven_) return;
  if (singles_left_ != 0 && singles_left_ != kForGood) --singles_left_;
  if (singles_left_ == 0) most_rows_.store(full_rows_, std::memory_order_relaxed);
}

WindowPolicy::Verdict WindowPolicy::disagreed(CloseCause cause, size_t rows, size_t ranges,
                                              std::string& news) {
  const MutexLock lock(mutex_);
  if (!proven_ && cause == CloseCause::kFinished && ranges < rows)
    return next_site(news) ? Verdict::kAgain : Verdict::kGiveUp;
  if (rows <= 1) return Verdict::kBlame;
  single_launches(news);
  return Verdict::kAgain;
}

WindowPolicy::Verdict WindowPolicy::refused(CloseCause cause, std::string& news) {
  const MutexLock lock(mutex_);
  if (cause == CloseCause::kOutside) {
    if (!outside_.exchange(false, std::memory_order_relaxed)) return Verdict::kLeftOpen;
    news =
        "CUPTI refused to close a window on another thread than the program's: from now on "
        "windows are closed only by threads that launch";
    return Verdict::kLeftOpen;
  }
  if (proven_) return Verdict::kBlame;
  return next_site(news) ? Verdict::kAgain : Verdict::kGiveUp;
}

bool WindowPolicy::next_site(std::string& news) {
  const auto at = static_cast<size_t>(site());
  if (chosen_ || at + 1 == kWords.size()) return false;
  site_.store(static_cast<CloseSite>(at + 1), std::memory_order_relaxed);
  news = "windows could not be read when closed " + std::string(kWords[at]) +
         ": they are now closed " + std::string(kWords[at + 1]);
  return true;
}

void WindowPolicy::single_launches(std::string& news) {
  const bool for_good = ++disagreements_ >= kMostDisagreements;
  singles_left_ = kFirstSingles;
  for (uint32_t i = 1; i < disagreements_ && !for_good; ++i) singles_left_ *= 8;
  if (for_good) singles_left_ = kForGood;
  most_rows_.store(1, std::memory_order_relaxed);
  news = for_good ? std::string(
                        "windows disagreed with CUPTI three times: from now on each holds "
                        "one launch")
                  : "the next " + std::to_string(singles_left_) + " windows hold one launch each";
}

}  // namespace flopinj
