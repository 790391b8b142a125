// Sums of launches by thread, stream, signature and path, until they are written.
#pragma once
#include <collector/launch_columns.h>

#include <cstddef>
#include <unordered_map>
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

 private:
  struct Key {
    ThreadId thread;
    StreamId stream;
    SignatureId signature;
    PathId path;
    bool windowed;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key&) const noexcept;
  };
  std::unordered_map<Key, size_t, Hash> index_;
  std::vector<TallyRow> rows_;
};

}  // namespace flopinj
