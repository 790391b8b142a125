#include <collector/schedule/window_size.h>

#include <algorithm>

namespace flopinj {

void WindowSize::agreed() {
  const MutexLock lock(mutex_);
  in_row_ = 0;
  if (singles_left_ != 0) --singles_left_;
  if (singles_left_ == 0) most_rows_.store(full_, std::memory_order_relaxed);
}

WindowSize::Verdict WindowSize::disagreed(size_t rows, std::string& news) {
  constexpr uint64_t kMostSingles = uint64_t{1} << 32;
  const MutexLock lock(mutex_);
  if (++in_row_ >= kMostInRow) return Verdict::kEnd;
  if (rows <= 1) return Verdict::kBlame;
  singles_ = singles_ == 0 ? kFirstSingles : std::min(8 * singles_, kMostSingles);
  singles_left_ = singles_;
  most_rows_.store(1, std::memory_order_relaxed);
  news = "the next " + std::to_string(singles_) + " windows hold one launch each";
  return Verdict::kAgain;
}

}  // namespace flopinj
