// Ids of one trace to indices of the reducer's own tables.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace flopinj::reduce {

inline constexpr uint32_t kNoIndex = UINT32_MAX;

// Ids count from 1 and are dense as a rule, so this is an array, of pages of which the used ones
// have memory. Maps of several traces may share pages, or all of them: a job has very many ranks. A
// damaged or hostile trace could ask for any amount of memory with one id: ids above kMaxId, or far
// above all before them, are refused.
class IdMap {
 public:
  static constexpr uint32_t kMaxId = 1U << 22;
  static constexpr uint32_t kMaxGap =
      1U << 16;  // far more definitions than lost packets could have held

  // False for an id that is refused. A later definition replaces an earlier one.
  bool set(uint32_t id, uint32_t index) {
    if (id == 0 || id > kMaxId || id > size_ + kMaxGap) return false;
    const uint32_t at = id - 1;
    if (!pages_ || pages_.use_count() > 1)
      pages_ = pages_ ? std::make_shared<Pages>(*pages_) : std::make_shared<Pages>();
    if (at / kPage >= pages_->size()) pages_->resize(at / kPage + 1);
    std::shared_ptr<Page>& page = (*pages_)[at / kPage];
    if (!page) {
      page = std::make_shared<Page>();
      page->fill(kNoIndex);
    } else if (page.use_count() > 1) {
      page = std::make_shared<Page>(*page);
    }
    (*page)[at % kPage] = index;
    size_ = std::max(size_, id);
    return true;
  }
  // No id above is defined.
  uint32_t size() const { return size_; }
  // kNoIndex for what was never defined.
  uint32_t get(uint32_t id) const {
    const uint32_t at = id - 1;
    if (at >= size_) return kNoIndex;
    const Page* const page = (*pages_)[at / kPage].get();
    return page != nullptr ? (*page)[at % kPage] : kNoIndex;
  }
  // What is alike has memory once. Only on one thread.
  void share_with(const IdMap& other) {
    if (!pages_ || !other.pages_) return;
    for (size_t i = 0; i < std::min(pages_->size(), other.pages_->size()); ++i)
      if ((*pages_)[i] && (*other.pages_)[i] && *(*pages_)[i] == *(*other.pages_)[i])
        (*pages_)[i] = (*other.pages_)[i];
    if (*pages_ == *other.pages_)
      pages_ = other.pages_;
    else
      pages_->shrink_to_fit();
  }

 private:
  static constexpr uint32_t kPage = 32;
  using Page = std::array<uint32_t, kPage>;
  using Pages = std::vector<std::shared_ptr<Page>>;
  std::shared_ptr<Pages> pages_;  // null: no id is known
  uint32_t size_ = 0;
};

}  // namespace flopinj::reduce
