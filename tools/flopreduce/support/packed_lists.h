// What very many devices have of the same subjects, in little memory: of each key a list of packed
// rows, which are told apart by their device.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "support/packed_values.h"

namespace flopinj::reduce {

// `Row`: as of write_packed(), without texts. Its first packed member is `uint32_t device`.
template <typename Key, typename Row>
class PackedLists {
  struct List {
    std::vector<uint8_t> bytes;
    uint32_t last = 0;     // device, of the row that was added last
    bool in_order = true;  // devices ascend, each comes once
  };

 public:
  // The rows of one key, one after another.
  class Cursor {
   public:
    bool next(Row& row) {
      if (at_ == end_) return false;
      read_packed(at_, row, {});
      return true;
    }

   private:
    friend class PackedLists;
    explicit Cursor(const List* list)
        : at_(list != nullptr ? list->bytes.data() : nullptr),
          end_(list != nullptr ? at_ + list->bytes.size() : nullptr) {}
    const uint8_t* at_;
    const uint8_t* end_;
  };

  void add(const Key& key, const Row& row) {
    const auto [entry, fresh] = lists_.try_emplace(key);
    List& list = entry->second;
    list.in_order = list.in_order && (fresh || list.last < row.device);
    list.last = row.device;
    write(list.bytes, row);
    ++size_;
  }
  // All rows of another one, which has none afterwards.
  void add(PackedLists& other) {
    while (!other.lists_.empty()) {
      auto from = other.lists_.extract(other.lists_.begin());
      const auto entry = lists_.find(from.key());
      if (entry == lists_.end()) {
        lists_.insert(std::move(from));
        continue;
      }
      std::vector<uint8_t>& bytes = entry->second.bytes;
      bytes.insert(bytes.end(), from.mapped().bytes.begin(), from.mapped().bytes.end());
      entry->second.in_order = false;
    }
    size_ += std::exchange(other.size_, 0);
  }
  size_t size() const { return size_; }
  // Rows in the order of their devices, each device once: merge(row, next) adds up what comes
  // again, in the order in which it was added. No slack is left. With a key, of its rows alone.
  template <typename Merge>
  void put_in_order(Merge&& merge) {
    for (auto& [key, list] : lists_) {
      if (!list.in_order) put_in_order(key, list, merge);
      list.bytes.shrink_to_fit();
    }
  }
  template <typename Merge>
  void put_in_order(const Key& key, Merge&& merge) {
    const auto found = lists_.find(key);
    if (found != lists_.end() && !found->second.in_order) put_in_order(key, found->second, merge);
  }
  Cursor rows(const Key& key) const {
    const auto found = lists_.find(key);
    return Cursor(found == lists_.end() ? nullptr : &found->second);
  }
  // Calls visit(key, row) for each, in the order of keys.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    Row row{};
    for (const auto& [key, list] : lists_)
      for (Cursor rows(&list); rows.next(row);) visit(key, std::as_const(row));
  }
  // Calls visit(key) for each, in their order.
  template <typename Visit>
  void for_each_key(Visit&& visit) const {
    for (const auto& [key, list] : lists_) visit(key);
  }

 private:
  static void write(std::vector<uint8_t>& bytes, const Row& row) {
    write_packed(bytes, row, [](const auto&) { return uint32_t{0}; });
  }
  template <typename Merge>
  void put_in_order(const Key& key, List& list, Merge&& merge) {
    std::vector<Row> all;
    Row row{};
    for (Cursor rows(&list); rows.next(row);) all.push_back(row);
    std::ranges::stable_sort(all, {}, &Row::device);
    size_ -= all.size();
    list = {};
    for (size_t i = 0, next = 0; i < all.size(); i = next) {
      for (next = i + 1; next < all.size() && all[next].device == all[i].device; ++next)
        merge(all[i], all[next]);
      add(key, all[i]);
    }
  }

  std::map<Key, List> lists_;
  size_t size_ = 0;
};

}  // namespace flopinj::reduce
