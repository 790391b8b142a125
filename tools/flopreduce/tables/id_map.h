// Ids of one trace to indices of the reducer's own tables.
#pragma once
#include <cstdint>
#include <vector>

namespace flopinj::reduce {

inline constexpr uint32_t kNoIndex = UINT32_MAX;

// Ids count from 1 and are dense, so this is an array. A damaged or hostile trace could ask for any
// amount of memory with one id: ids above kMaxId, or far above all before them, are refused.
class IdMap {
 public:
  static constexpr uint32_t kMaxId = 1U << 22;
  static constexpr uint32_t kMaxGap =
      1U << 16;  // far more definitions than lost packets could have held

  // False for an id that is refused. A later definition replaces an earlier one.
  bool set(uint32_t id, uint32_t index) {
    if (id == 0 || id > kMaxId || id > index_.size() + kMaxGap) return false;
    if (id > index_.size()) index_.resize(id, kNoIndex);
    index_[id - 1] = index;
    return true;
  }
  // No id above is defined.
  uint32_t size() const { return static_cast<uint32_t>(index_.size()); }
  // kNoIndex for what was never defined.
  uint32_t get(uint32_t id) const { return id - 1 < index_.size() ? index_[id - 1] : kNoIndex; }

 private:
  std::vector<uint32_t> index_;
};

}  // namespace flopinj::reduce
