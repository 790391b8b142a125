// The union of kernel times of one device, from intervals in nearly the right order, in bounded
// memory.
//
// A trace's batches are written in the order of time, but for what waited for its times; batches of
// other threads and streams overlap. So the newest intervals are kept; when there are too many, the
// oldest are folded into sums. What begins before something that is folded already is late: it is
// counted, and no gap is closed by it.
//
// A part of a file is tracked on its own: its first intervals, too, are kept, since what comes
// before it in the file may overlap them. Parts are then appended in the file's order, so that the
// result does not depend on which thread read which part.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "passes/rows/busy_interval.h"
#include "passes/rows/short_gaps.h"
#include "support/without_values.h"
#include "tables/busy_time.h"

namespace flopinj::reduce {

class BusyTrack {
 public:
  // Keeps at least `kept` of the newest intervals, up to four times as many; of a part of a file
  // also the first `kept`.
  BusyTrack(size_t kept, bool part) : kept_(kept), part_(part) {}
  // In the order of their beginnings.
  void add(std::span<const BusyInterval> batch);
  // The same without a copy: `most` of them or fewer are written to where room() says; added()
  // tells how many have been, and follows each call of room().
  BusyInterval* room(size_t most);
  void added(size_t count);
  // A part that follows in the file.
  void append(const BusyTrack& later);
  // Folds all that is left.
  BusyTime take();

 private:
  struct Run {
    size_t at = 0, end = 0;  // in newest_
  };
  struct Folded {
    uint64_t first_begin = 0;  // sums are of what lies after this
    uint64_t last_begin = 0;   // of all intervals
    uint64_t end = 0;          // of what they cover
    BusyInterval last{};       // the one that ends there
  };

  void fold(size_t count);
  const BusyInterval* fold_run(const BusyInterval* at, const BusyInterval* end, uint64_t limit);
  void fold_some(std::span<const BusyInterval> some);
  void take_short_gaps();
  void fold_before(uint64_t begin);
  void drop_folded();
  void late(uint64_t ns);

  size_t kept_;
  bool part_;
  std::vector<BusyInterval> head_;  // the first intervals of a part
  BusyTime sums_;                   // of what was folded after them
  ShortGaps short_gaps_;            // empty between two folds; until then sums_ takes them for busy
  Folded folded_;
  std::vector<BusyInterval, WithoutValues<BusyInterval>> newest_;
  size_t before_room_ = 0;  // of newest_
  std::vector<Run> runs_;   // of newest_, each in order
};

}  // namespace flopinj::reduce
