// A list that holds a few elements in itself, without a call for memory, and any number elsewhere.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace flopinj::reduce {

template <class T, size_t kFew>
class FewList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  T* begin() { return many_ ? many_->data() : few_.data(); }
  const T* begin() const { return many_ ? many_->data() : few_.data(); }
  T* end() { return begin() + size(); }
  const T* end() const { return begin() + size(); }
  size_t size() const { return many_ ? many_->size() : size_; }
  bool empty() const { return size() == 0; }
  T& front() { return *begin(); }
  const T& front() const { return *begin(); }
  const T& back() const { return *(end() - 1); }

  void push_back(const T& element) {
    if (!many_ && size_ < kFew) {
      few_[size_++] = element;
      return;
    }
    if (!many_) many_ = std::make_unique<std::vector<T>>(few_.begin(), few_.end());
    many_->push_back(element);
  }
  template <class Which>
  void erase_if(Which&& which) {
    shrink_to(std::remove_if(begin(), end(), which));
  }
  void pop_front() { shrink_to(std::move(begin() + 1, end(), begin())); }
  void clear() {
    many_.reset();
    size_ = 0;
  }
  bool operator==(const FewList& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  void shrink_to(const T* end) {
    const auto kept = static_cast<size_t>(end - begin());
    if (many_)
      many_->resize(kept);
    else
      size_ = static_cast<uint32_t>(kept);
  }

  std::unique_ptr<std::vector<T>> many_;  // all elements, once they are too many
  uint32_t size_ = 0;                     // otherwise
  std::array<T, kFew> few_{};
};

}  // namespace flopinj::reduce
