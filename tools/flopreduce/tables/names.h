// Every distinct name of all traces, once.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace flopinj::reduce {

// Bounded: past the limits, new names become kTooMany and `full` is set. Indices count from 0; 0 is
// the empty name.
class NamePool {
 public:
  static constexpr uint32_t kEmpty = 0;
  static constexpr uint32_t kTooMany = 1;
  static constexpr size_t kMaxNames = 1U << 20;
  static constexpr size_t kMaxBytes = 96U << 20;
  static constexpr size_t kMaxNameBytes = 32U << 10;  // longer names are cut

  NamePool() {
    add("");
    add("(more names than a report keeps)");
  }
  uint32_t intern(std::string_view name, bool& full) {
    name = name.substr(0, kMaxNameBytes);
    const auto found = index_.find(name);
    if (found != index_.end()) return found->second;
    if (names_.size() >= kMaxNames || bytes_ + name.size() > kMaxBytes) {
      full = true;
      return kTooMany;
    }
    return add(name);
  }
  // Index of a name, or nothing where no trace has it.
  std::optional<uint32_t> find(std::string_view name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::string& operator[](uint32_t index) const { return names_[index]; }
  size_t size() const { return names_.size(); }

 private:
  uint32_t add(std::string_view name) {
    bytes_ += name.size();
    const auto index = static_cast<uint32_t>(names_.size());
    names_.emplace_back(name);
    index_.emplace(names_.back(), index);  // a deque's elements never move
    return index;
  }
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, uint32_t> index_;
  size_t bytes_ = 0;
};

}  // namespace flopinj::reduce
