// Values by key, asked for in an order that repeats: training makes the same launches again and
// again. So the value after this one is mostly the one that came after it the last time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flopinj::reduce {

template <class Key, class Value, class Hash>
class RepeatingTable {
 public:
  using Entry = std::pair<Key, Value>;

  explicit RepeatingTable(size_t most) : most_(most) {}
  // Null where the key is new and there is no room. Valid until the next call.
  Value* at(const Key& key) {
    const size_t guess = last_ < next_.size() ? next_[last_] : 0;
    if (guess < entries_.size() && entries_[guess].first == key) [[likely]] {
      last_ = guess;
      return &entries_[guess].second;
    }
    return look_up(key);
  }
  // The place among entries() of what at() gave last.
  size_t last() const { return last_; }
  const std::vector<Entry>& entries() const { return entries_; }  // by first use
  // The same, which leaves none.
  std::vector<Entry> take() {
    next_.clear();
    places_.clear();
    last_ = 0;
    return std::exchange(entries_, {});
  }

 private:
  [[gnu::noinline]] Value* look_up(const Key& key) {
    auto found = places_.find(key);
    if (found == places_.end()) {
      if (entries_.size() >= most_) return nullptr;
      found = places_.emplace(key, static_cast<uint32_t>(entries_.size())).first;
      entries_.emplace_back(key, Value{});
      next_.push_back(0);
    }
    next_[last_] = found->second;
    last_ = found->second;
    return &entries_[last_].second;
  }

  size_t most_;
  size_t last_ = 0;
  std::vector<Entry> entries_;
  std::vector<uint32_t> next_;  // of each entry, the one asked for after it the last time
  std::unordered_map<Key, uint32_t, Hash> places_;
};

}  // namespace flopinj::reduce
