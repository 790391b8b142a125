#include <collector/ranges/range_numbers.h>

#include <exception>

namespace flopinj {

void RangeNumbers::add(PathId path, StringId name, uint64_t value) noexcept {
  const MutexLock lock(mutex_);
  try {
    const std::pair key(path.value, name.value);
    auto sum = sums_.find(key);
    if (sum == sums_.end() && sums_.size() < kMost) sum = sums_.try_emplace(key).first;
    if (sum == sums_.end() || sum->second.total > UINT64_MAX - value) {
      ++lost_;
      return;
    }
    ++sum->second.times;
    sum->second.total += value;
    changed_ = true;
  } catch (const std::exception&) {
    ++lost_;
  }
}

std::vector<RangeNumber> RangeNumbers::take() {
  const MutexLock lock(mutex_);
  std::vector<RangeNumber> all;
  if (!changed_) return all;
  all.reserve(sums_.size());
  for (const auto& [key, sum] : sums_)
    all.push_back({PathId{key.first}, StringId{key.second}, sum.times, sum.total});
  changed_ = false;
  return all;
}

uint64_t RangeNumbers::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

}  // namespace flopinj
