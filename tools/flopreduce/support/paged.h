// An array that has memory only for pages that were used.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace flopinj::reduce {

template <typename Value, size_t kSize, size_t kPage>
class Paged {
 public:
  static_assert(kSize % kPage == 0);

  Value& operator[](size_t index) {
    if (pages_.empty()) [[unlikely]]
      pages_.resize(kSize / kPage);
    auto& page = pages_[index / kPage];
    if (!page) page = std::make_unique<std::array<Value, kPage>>();
    return (*page)[index % kPage];
  }
  // Calls visit(Value&) for all values of pages that are there, in order.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (auto& page : pages_)
      if (page)
        for (Value& value : *page) visit(value);
  }

 private:
  std::vector<std::unique_ptr<std::array<Value, kPage>>> pages_;  // none before the first is used
};

}  // namespace flopinj::reduce
