// How many launches a measurement window holds.
//
// The first one holds kFirst, so that its counts are there soon, and few are lost where it
// disagrees.
//
// CUPTI documents that each kernel is one range, and not whether other work is (memory operations,
// kernels of the driver). A window whose ranges are not its launches is thrown away, since nothing
// says which of them is whose, and its launches are measured again. The next kFirstSingles windows
// hold one launch each and are closed at its EXIT, so that nothing can be beside it; and eight
// times as many after each further window that disagrees. A window of one launch that disagrees is
// held against its kernel. Where kMostInRow windows disagree one after another, nothing can be
// measured.
//
// Threads: any. most_rows() takes no lock.
#pragma once
#include <collector/base/mutex.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace flopinj {

class WindowSize {
 public:
  static constexpr uint32_t kFirst = 3, kFirstSingles = 8, kMostInRow = 3;

  explicit WindowSize(uint32_t full) : most_rows_(kFirst), full_(full) {}

  uint32_t most_rows() const noexcept { return most_rows_.load(std::memory_order_relaxed); }

  enum class Verdict : uint8_t {
    kAgain,  // its launches are measured again, in windows of one launch; `news` says how many
    kBlame,  // the kernel of its one launch is to blame
    kEnd     // nothing can be measured
  };
  // A window of some launches had as many ranges, or not.
  void agreed();
  Verdict disagreed(size_t rows, std::string& news);

 private:
  std::atomic<uint32_t> most_rows_;
  const uint32_t full_;
  Mutex mutex_;
  uint64_t singles_ FLOPINJ_GUARDED_BY(mutex_) = 0;       // after the last disagreement
  uint64_t singles_left_ FLOPINJ_GUARDED_BY(mutex_) = 0;  // 0: windows are full
  uint32_t in_row_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
