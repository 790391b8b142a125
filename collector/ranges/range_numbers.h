// Numbers that a program gives to its ranges, such as tokens=4096, added up by range and name: so a
// number that differs from step to step takes no more room than one that does not.
#pragma once
#include <collector/base/mutex.h>
#include <collector/identity/ids.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace flopinj {

struct RangeNumber {
  PathId path;
  StringId name;
  uint64_t times = 0, total = 0;
};

// Any thread; locks. A program says such a number once or a few times in a step.
class RangeNumbers {
 public:
  static constexpr size_t kMost = 1'024;  // ranges and names; numbers beyond are counted as lost

  void add(PathId, StringId name, uint64_t value) noexcept;
  // All of them, in the order of ids; none where nothing came since the last call.
  std::vector<RangeNumber> take();
  uint64_t lost() const;

 private:
  struct Sum {
    uint64_t times = 0, total = 0;
  };
  mutable Mutex mutex_;
  std::map<std::pair<uint32_t, uint32_t>, Sum> sums_ FLOPINJ_GUARDED_BY(mutex_);
  bool changed_ FLOPINJ_GUARDED_BY(mutex_) = false;
  uint64_t lost_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
