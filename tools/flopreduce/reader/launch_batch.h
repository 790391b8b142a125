// LaunchBatch as a sequence of launches.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/columns.h"
#include "reader/damage.h"

namespace flopinj::reduce {

struct LaunchRow {
  uint32_t signature = 0;
  uint32_t range_path = 0;
  uint64_t start_ns = 0;  // on the trace's clock; 0 with no time, as the duration
  uint64_t duration_ns = 0;
  bool timed = false;
  bool graph = false;
  bool windowed = false;
};

// Durations are differences to the launch of the same signature before it: one value per signature
// id, forgotten between batches by raising the epoch.
class LastDurations {
 public:
  void new_batch() {
    ++epoch_;
    beyond_.clear();
  }
  uint64_t& of(uint32_t signature);

 private:
  struct Entry {
    uint32_t epoch = 0;
    uint64_t ns = 0;
  };
  static constexpr uint32_t kDense = 1U << 16;  // ids count from 1; higher ones go to the map
  std::vector<Entry> dense_ = std::vector<Entry>(kDense);
  std::unordered_map<uint32_t, uint64_t> beyond_;
  uint32_t epoch_ = 0;
};

class LaunchBatchReader {
 public:
  // Checks every column before the first launch is handed out: a batch is used whole or not at all.
  // `body` must outlive the reader. False, with the damage logged, where the columns do not fit.
  bool open(protozero::data_view body, DamageLog& damage);
  uint32_t thread() const { return thread_; }
  uint32_t stream() const { return stream_; }

  // Calls visit(const LaunchRow&) for each launch. Launches with an impossible duration count as
  // untimed.
  template <typename Visit>
  void for_each(LastDurations& last, DamageLog& damage, Visit&& visit);

  // Calls visit(path id, sequence number + 1 or 0, whether from a graph, launches) for stretches of
  // launches that are alike in these, in order.
  template <typename Visit>
  void for_each_sequence(Visit&& visit) const;

 private:
  struct Views {
    protozero::data_view signature, range_path, duration, gap, untimed, graph, windowed, sequence;
  };
  bool read_fields(protozero::data_view body, bool& packed_once);
  bool fits();

  Views views_;
  std::string canonical_;
  uint32_t thread_ = 0;
  uint32_t stream_ = 0;
  uint64_t first_start_ns_ = 0;
  size_t size_ = 0;
  bool times_absent_ = false;
};

// A kernel that runs longer than this is a damaged number.
inline constexpr uint64_t kLongestKernelNs = 1000ULL * 1000 * 1000 * 86400 * 30;

template <typename Visit>
void LaunchBatchReader::for_each(LastDurations& last, DamageLog& damage, Visit&& visit) {
  Column signature(views_.signature);
  Column gap(views_.gap);
  Column duration(views_.duration);
  Column untimed(views_.untimed);
  RunColumn path(views_.range_path);
  RunColumn graph(views_.graph);
  RunColumn windowed(views_.windowed);
  uint64_t next_untimed = untimed.empty() ? UINT64_MAX : untimed.next();
  last.new_batch();
  uint64_t now = first_start_ns_;
  LaunchRow row;
  for (size_t i = 0; i < size_; ++i) {
    row.signature = signature.next32();
    row.range_path = static_cast<uint32_t>(path.next());
    row.graph = graph.next() != 0;
    row.windowed = windowed.next() != 0;
    const uint64_t start = now + static_cast<uint64_t>(gap.next_signed());
    const int64_t delta = duration.next_signed();
    row.timed = !times_absent_ && i != next_untimed;
    row.start_ns = row.duration_ns = 0;
    if (i == next_untimed)
      next_untimed = untimed.empty() ? UINT64_MAX : next_untimed + untimed.next();
    if (row.timed) {
      uint64_t& before = last.of(row.signature);
      const uint64_t length = before + static_cast<uint64_t>(delta);
      if (length > kLongestKernelNs) {
        damage.add(Damage::kBadTime);
        row.timed = false;
      } else {
        row.start_ns = start;
        row.duration_ns = before = length;
        now = start + length;
      }
    }
    visit(static_cast<const LaunchRow&>(row));
  }
}

template <typename Visit>
void LaunchBatchReader::for_each_sequence(Visit&& visit) const {
  RunColumn paths(views_.range_path);
  RunColumn sequences(views_.sequence);
  RunColumn graphs(views_.graph);
  struct Stretch {
    uint64_t path = 0, sequence = 0;
    bool graph = false;
    bool operator==(const Stretch&) const = default;
  } current;
  uint64_t count = 0;
  const auto flush = [&] {
    if (count > 0)
      visit(static_cast<uint32_t>(current.path), current.sequence, current.graph, count);
  };
  for (size_t i = 0; i < size_; ++i) {
    const Stretch next{paths.next(), sequences.next(), graphs.next() != 0};
    if (next != current) {
      flush();
      current = next;
      count = 0;
    }
    ++count;
  }
  flush();
}

}  // namespace flopinj::reduce
