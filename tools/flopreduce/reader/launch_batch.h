// LaunchBatch, checked and cut into what can be read in one go.
#pragma once
#include <algorithm>
#include <cstdint>
#include <protozero/varint.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/columns.h"
#include "reader/damage.h"
#include "reader/pattern_table.h"

namespace flopinj::reduce {

// A kernel that runs longer than this is a damaged number.
inline constexpr uint64_t kLongestKernelNs = 1000ULL * 1000 * 1000 * 86400 * 30;
// Launches in a batch: a few bytes can mean no more than this.
inline constexpr size_t kMaxBatchLaunches = 1U << 16;

// Which launches, without their times: rows of the trace's patterns, or named one by one.
class LaunchOrder {
 public:
  LaunchOrder() = default;
  LaunchOrder(protozero::data_view pattern_runs, protozero::data_view signatures,
              protozero::data_view paths, size_t launches)
      : runs_(pattern_runs),
        signatures_(signatures),
        paths_(paths),
        launches_(launches),
        no_patterns_(pattern_runs.empty()) {}
  // Launches that are rows of the patterns from `first_row` on, or, where that is 0, so many to be
  // asked for by next_named().
  struct Run {
    uint64_t first_row = 0;
    size_t launches = 0;
  };
  struct Named {
    uint32_t signature = 0, path = 0;
  };
  // Without any launches at the end.
  Run next_run() {
    if (launches_ == 0) return {};
    Run run{0, launches_};
    if (!no_patterns_) {
      run.first_row = runs_.next();
      run.launches = static_cast<size_t>(runs_.next());
    }
    launches_ -= run.launches;
    return run;
  }
  Named next_named() {
    const uint32_t signature = signatures_.next32();
    return {signature, static_cast<uint32_t>(paths_.next())};
  }

 private:
  PackedColumn runs_, signatures_;
  RunColumn paths_;
  size_t launches_ = 0;  // after the run at hand
  bool no_patterns_ = true;
};

// One launch, for who looks at each.
struct LaunchRow {
  uint32_t signature = 0;
  uint32_t range_path = 0;
  uint64_t sequence = 0;  // of autograd, plus 1; 0 without one, and of a graph launch
  uint64_t start_ns = 0;  // on the trace's clock; 0 with no time, as the duration
  uint64_t duration_ns = 0;
  uint32_t step = 0;  // number of the training step that it is in; 0: none
  bool timed = false;
  bool graph = false;
  bool windowed = false;
};

// Sequence numbers of launches that follow each other; 0 for a launch without one.
class SequenceSteps {
 public:
  explicit SequenceSteps(uint64_t base) : last_(base) {}
  // Of a launch named by itself.
  uint64_t is(uint64_t number) {
    if (number != 0) last_ = number;
    return number;
  }
  // Of a pattern's row: the step plus 1, zigzag, or 0 for none.
  uint64_t after(uint32_t step) {
    if (step == 0) return 0;
    return is(last_ + static_cast<uint64_t>(protozero::decode_zigzag64(step - 1)));
  }

 private:
  uint64_t last_;
};

// By signature id, 0 at first. Most ids are small.
class LastDurations {
 public:
  uint64_t& of(uint32_t signature) {
    if (signature >= kSmall) return large_[signature];
    if (signature >= small_.size())
      small_.resize(std::max<size_t>(signature + 1, 2 * small_.size()));
    return small_[signature];
  }

 private:
  static constexpr uint32_t kSmall = 1U << 14;
  std::vector<uint64_t> small_;
  std::unordered_map<uint32_t, uint64_t> large_;
};

class LaunchBatchReader {
 public:
  // Checks every column before the first launch is handed out: a batch is used whole or not at all.
  // `body` must outlive what is read. False, with the damage logged, where the columns do not fit.
  bool open(protozero::data_view body, DamageLog& damage);
  uint32_t thread() const { return thread_; }
  uint32_t stream() const { return stream_; }
  size_t size() const { return size_; }
  bool has_times() const { return !views_.gap.empty(); }
  uint64_t first_start_ns() const { return first_start_ns_; }
  LaunchOrder order() const { return {views_.pattern, views_.signature, views_.range_path, size_}; }
  PackedColumn gaps() const { return PackedColumn(views_.gap); }
  PackedColumn durations() const { return PackedColumn(views_.duration); }

  // A stretch of launches that are alike in this.
  struct Stretch {
    size_t begin = 0, end = 0;
    bool timed = false, graph = false, windowed = false;
  };
  // Calls visit(const Stretch&) for stretches that follow each other and are all launches.
  template <typename Visit>
  void for_each_stretch(Visit&& visit) const;

  // Calls visit(const LaunchRow&) for each launch, in order. Launches with an impossible duration
  // count as untimed. What only totals need is in the functions above, which are faster.
  template <typename Visit>
  void for_each(const PatternTable& patterns, DamageLog& damage, Visit&& visit) const;

  // Calls visit(signature id, how much longer it took than the last such launch of its signature,
  // whether counters were read) for each launch with a time. The first of a signature is compared
  // with 0, one that is longer than kLongestKernelNs is never compared with.
  template <typename Visit>
  void for_each_timed(const PatternTable& patterns, Visit&& visit) const;

  // Calls visit(path id, sequence number + 1 or 0, whether from a graph, launches) for stretches of
  // launches that are alike in these, in order.
  template <typename Visit>
  void for_each_sequence(const PatternTable& patterns, Visit&& visit) const;

 private:
  struct Views {
    protozero::data_view signature, range_path, duration, gap, untimed, graph, windowed, sequence,
        pattern, step;
  };
  // Calls visit(signature id, path id, sequence number + 1 or 0) for each launch, in order.
  template <typename Visit>
  void for_each_named(const PatternTable& patterns, Visit&& visit) const;
  protozero::data_view* view_of(uint32_t field);
  bool read_fields(protozero::data_view body, bool& packed_once);
  bool fits();
  bool count_launches();

  Views views_;
  std::string canonical_;
  uint32_t thread_ = 0;
  uint32_t stream_ = 0;
  uint64_t first_start_ns_ = 0;
  uint64_t sequence_base_ = 0;
  size_t size_ = 0;
};

template <typename Visit>
void LaunchBatchReader::for_each_stretch(Visit&& visit) const {
  PackedColumn untimed(views_.untimed);
  RunColumn graph(views_.graph);
  RunColumn windowed(views_.windowed);
  size_t next_untimed = untimed.empty() ? size_ : static_cast<size_t>(untimed.next());
  for (size_t at = 0; at < size_;) {
    Stretch s{at, size_, has_times(), graph.peek() != 0, windowed.peek() != 0};
    s.end = at + windowed.run(graph.run(size_ - at));
    if (at == next_untimed) {
      s.timed = false;
      s.end = at + 1;
      next_untimed = untimed.empty() ? size_ : next_untimed + static_cast<size_t>(untimed.next());
    } else {
      s.end = std::min(s.end, next_untimed);
    }
    graph.skip(s.end - at);
    windowed.skip(s.end - at);
    visit(static_cast<const Stretch&>(s));
    at = s.end;
  }
}

template <typename Visit>
void LaunchBatchReader::for_each(const PatternTable& patterns, DamageLog& damage,
                                 Visit&& visit) const {
  PackedColumn gap(views_.gap);
  PackedColumn duration(views_.duration);
  PackedColumn untimed(views_.untimed);
  RunColumn graph(views_.graph);
  RunColumn windowed(views_.windowed);
  RunColumn step(views_.step);
  LastDurations last;  // durations are differences
  uint64_t next_untimed = untimed.empty() ? UINT64_MAX : untimed.next();
  uint64_t now = first_start_ns_;
  uint64_t index = 0;
  const auto launch = [&](uint32_t signature, uint32_t path, uint64_t sequence) {
    LaunchRow row{.signature = signature, .range_path = path};
    row.graph = graph.next() != 0;
    row.windowed = windowed.next() != 0;
    row.step = static_cast<uint32_t>(step.next());
    row.sequence = row.graph ? 0 : sequence;
    const uint64_t start = now + static_cast<uint64_t>(gap.next_signed());
    const int64_t delta = duration.next_signed();
    if (index++ == next_untimed) {
      next_untimed = untimed.empty() ? UINT64_MAX : next_untimed + untimed.next();
    } else if (has_times()) {
      uint64_t& before = last.of(signature);
      const uint64_t length = before + static_cast<uint64_t>(delta);
      row.timed = length <= kLongestKernelNs;
      if (row.timed) {
        row.start_ns = start;
        row.duration_ns = before = length;
        now = start + length;
      } else {
        damage.add(Damage::kBadTime);
      }
    }
    visit(static_cast<const LaunchRow&>(row));
  };
  for_each_named(patterns, launch);
}

template <typename Visit>
void LaunchBatchReader::for_each_timed(const PatternTable& patterns, Visit&& visit) const {
  if (!has_times()) return;
  PackedColumn durations = this->durations();
  LaunchOrder order = this->order();
  LaunchOrder::Run run;
  bool is_pattern = false;
  for_each_stretch([&](const Stretch& alike) {
    for (size_t at = alike.begin; at < alike.end; ++at) {
      if (run.launches == 0) {
        run = order.next_run();
        is_pattern = run.first_row != 0;
      }
      --run.launches;
      const uint32_t signature =
          is_pattern ? patterns.get(run.first_row++).signature : order.next_named().signature;
      const int64_t longer = durations.next_signed_there();
      if (alike.timed) visit(signature, longer, alike.windowed);
    }
  });
}

template <typename Visit>
void LaunchBatchReader::for_each_sequence(const PatternTable& patterns, Visit&& visit) const {
  RunColumn graphs(views_.graph);
  struct Alike {
    uint32_t path = 0;
    uint64_t sequence = 0;
    bool graph = false;
    bool operator==(const Alike&) const = default;
  } current;
  uint64_t count = 0;
  for_each_named(patterns, [&](uint32_t, uint32_t path, uint64_t sequence) {
    const Alike next{path, sequence, graphs.next() != 0};
    if (next != current && count > 0) {
      visit(current.path, current.sequence, current.graph, count);
      count = 0;
    }
    current = next;
    ++count;
  });
  if (count > 0) visit(current.path, current.sequence, current.graph, count);
}

template <typename Visit>
void LaunchBatchReader::for_each_named(const PatternTable& patterns, Visit&& visit) const {
  RunColumn sequences(views_.sequence);
  SequenceSteps steps(sequence_base_);
  LaunchOrder order = this->order();
  for (auto run = order.next_run(); run.launches > 0; run = order.next_run())
    for (size_t i = 0; i < run.launches; ++i) {
      if (run.first_row == 0) {
        const LaunchOrder::Named named = order.next_named();
        visit(named.signature, named.path, steps.is(sequences.next()));
      } else {
        const PatternTable::Row pattern = patterns.get(run.first_row + i);
        visit(pattern.signature, pattern.path, steps.after(pattern.sequence_step));
      }
    }
}

}  // namespace flopinj::reduce
