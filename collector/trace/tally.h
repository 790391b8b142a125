// Sums of launches by thread, stream, signature and path.
#pragma once
#include <collector/trace/launch_columns.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flopinj {

inline constexpr size_t kMaxTallyEntries = 65'536;

class Tally {
 public:
  void add(ThreadId, StreamId, const TimedLaunch&);
  void add(const TallyRow&);  // to the row of the same key
  bool empty() const { return rows_.empty(); }
  bool full() const {
    return rows_.size() >= kMaxTallyEntries;
  }  // write and clear it before the next add()
  const std::vector<TallyRow>& rows() const { return rows_; }
  void clear();

  // The rows in blocks, in the order they came: a block that has changed is written again.
  static constexpr size_t kBlockRows = 1'024;
  size_t blocks() const { return changed_.size(); }
  std::span<const TallyRow> block(size_t i) const {
    return std::span(rows_)
        .subspan(i * kBlockRows)
        .first(std::min(kBlockRows, rows_.size() - i * kBlockRows));
  }
  // Whether a row of the block was added or changed since the last call.
  bool take_changed(size_t i) { return std::exchange(changed_[i], uint8_t{0}) != 0; }

 private:
  struct Key {
    ThreadId thread;
    StreamId stream;
    SignatureId signature;
    PathId path;
    bool windowed, in_step;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key&) const noexcept;
  };
  std::unordered_map<Key, size_t, Hash> index_;
  std::vector<TallyRow> rows_;
  std::vector<uint8_t> changed_;  // by block
};

}  // namespace flopinj
