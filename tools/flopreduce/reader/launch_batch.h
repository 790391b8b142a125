// LaunchBatch, checked and cut into what can be read in one go.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flop_trace_fields.h"
#include "reader/batch_fields.h"
#include "reader/columns.h"
#include "reader/damage.h"
#include "reader/pattern_calls.h"
#include "reader/pattern_table.h"
#include "reader/skipped_steps.h"

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
              protozero::data_view paths, protozero::data_view calls, size_t launches)
      : runs_(pattern_runs),
        signatures_(signatures),
        paths_(paths),
        calls_(calls),
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
    bool call = false;  // the first launch of a call of an operator
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
    const auto path = static_cast<uint32_t>(paths_.next());
    return {signature, path, calls_.next() != 0};
  }

 private:
  PackedColumn runs_, signatures_;
  RunColumn paths_, calls_;
  size_t launches_ = 0;  // after the run at hand
  bool no_patterns_ = true;
};

// Launches that follow each other and are alike in the first three.
struct LaunchCall {
  uint64_t sequence = 0;  // plus 1; 0: none
  uint32_t path = 0;      // id
  uint32_t launches = 0;
  uint32_t calls = 0;  // of an operator, that began among them
  bool graph = false;  // from a graph: the number is that of its capture
};

// All launches of a pattern's call, which have this sequence number where it has one.
inline LaunchCall whole_call(const PatternCalls::Call& call, uint64_t sequence, bool graph) {
  return {call.numbered ? sequence : 0, call.path, call.launches(), call.calls, graph};
}

class LaunchBatchReader {
 public:
  LaunchBatchReader();
  // Checks every column before the first launch is handed out: a batch is used whole or not at all.
  // `body` must outlive what is read. False, with the damage logged, where the columns do not fit.
  bool open(protozero::data_view body, DamageLog& damage, uint32_t packet = 0);
  // From now on it is without launches that are skipped, written anew where it has some. Says which
  // these were.
  SkippedLaunches leave_out(const SkippedSteps& skipped, const PatternTable& patterns);
  // The batch's packet in its trace, as it was given.
  uint32_t packet() const { return packet_; }
  uint32_t thread() const { return static_cast<uint32_t>(fields_.number(Field::thread)); }
  uint32_t stream() const { return static_cast<uint32_t>(fields_.number(Field::stream)); }
  size_t size() const { return size_; }
  bool has_times() const { return !column(Field::gap_ns).empty(); }
  uint64_t first_start_ns() const { return fields_.number(Field::first_start_ns); }
  LaunchOrder order() const {
    return {column(Field::pattern_run), column(Field::signature), column(Field::range_path_run),
            column(Field::call_run), size_};
  }
  PackedColumn gaps() const { return PackedColumn(column(Field::gap_ns)); }
  PackedColumn durations() const { return PackedColumn(column(Field::duration_delta_ns)); }
  bool has_calls() const { return !column(Field::called_before).empty(); }
  PackedColumn called_before() const { return PackedColumn(column(Field::called_before)); }
  PackedColumn pauses() const { return PackedColumn(column(Field::pause)); }
  uint64_t clock_error_ns() const { return fields_.number(Field::clock_error_ns); }

  // A stretch of launches that are alike in this.
  struct Stretch {
    size_t begin = 0, end = 0;
    bool timed = false, graph = false, windowed = false;
    uint32_t step = 0;  // number of the training step; 0: none
  };
  // Calls visit(const Stretch&) for stretches that follow each other and are all launches.
  template <typename Visit>
  void for_each_stretch(Visit&& visit) const;

  // Calls visit(const LaunchCall&) for all of its launches, in order. No times are looked at. Most
  // are calls of patterns, which follow each other: these go to whole(calls, last, graph), which
  // returns the last sequence number after them, where `last` is the one before them.
  template <typename Visit, typename Whole>
  void for_each_call(const PatternCalls& patterns, Visit&& visit, Whole&& whole) const;
  // The same, in `room`.
  std::span<const LaunchCall> calls(const PatternCalls& patterns,
                                    std::vector<LaunchCall>& room) const;

 private:
  using Field = trace_fields::LaunchBatchField;
  const protozero::data_view& column(Field field) const { return fields_.column(field); }
  struct Launch;
  bool fits();
  bool count_launches();
  std::vector<Launch> launches(const PatternTable& patterns) const;
  void note_times(std::vector<Launch>& launches) const;
  void write(const std::vector<Launch>& launches);

  BatchFields fields_;
  std::string written_;  // by leave_out()
  size_t size_ = 0;
  uint32_t packet_ = 0;
};

template <typename Visit>
void LaunchBatchReader::for_each_stretch(Visit&& visit) const {
  PackedColumn untimed(column(Field::untimed_delta));
  RunColumn graph(column(Field::graph_run));
  RunColumn windowed(column(Field::windowed_run));
  RunColumn step(column(Field::step_run));
  size_t next_untimed = untimed.empty() ? size_ : static_cast<size_t>(untimed.next());
  for (size_t at = 0; at < size_;) {
    Stretch s{at, size_, has_times(), graph.peek() != 0, windowed.peek() != 0};
    s.step = static_cast<uint32_t>(step.peek());
    s.end = at + step.run(windowed.run(graph.run(size_ - at)));
    if (at == next_untimed) {
      s.timed = false;
      s.end = at + 1;
      next_untimed = untimed.empty() ? size_ : next_untimed + static_cast<size_t>(untimed.next());
    } else {
      s.end = std::min(s.end, next_untimed);
    }
    graph.skip(s.end - at);
    windowed.skip(s.end - at);
    step.skip(s.end - at);
    visit(static_cast<const Stretch&>(s));
    at = s.end;
  }
}

template <typename Visit, typename Whole>
void LaunchBatchReader::for_each_call(const PatternCalls& patterns, Visit&& visit,
                                      Whole&& whole) const {
  RunColumn sequences(column(Field::sequence_run)), graphs(column(Field::graph_run));
  uint64_t last = fields_.number(Field::sequence_base);
  size_t alike = 0;  // launches that follow and are all from graphs, or none of them is
  // The call at hand, member by member: a structure written in parts and read at once is waited for
  uint64_t its_sequence = 0;
  uint32_t its_path = 0, launches = 0, calls = 0;
  bool its_graph = false;
  const auto give = [&] {
    if (launches > 0) visit(LaunchCall{its_sequence, its_path, launches, calls, its_graph});
    launches = calls = 0;
  };
  // Of at most `most` launches: how many follow that are all from graphs, or none of them is.
  const auto take_alike = [&](size_t most) {
    if (alike == 0) {
      const bool graph = graphs.peek() != 0;
      alike = graphs.run(size_);
      graphs.skip(alike);
      if (graph != its_graph) {
        give();
        its_graph = graph;
      }
    }
    const size_t taken = std::min(alike, most);
    alike -= taken;
    return taken;
  };
  const auto add = [&](uint32_t path, uint64_t sequence, size_t more, uint32_t begun) {
    if (path != its_path || sequence != its_sequence) {
      give();
      its_sequence = sequence;
      its_path = path;
    }
    launches += static_cast<uint32_t>(more);
    calls += begun;
  };
  LaunchOrder order = this->order();
  for (auto run = order.next_run(); run.launches > 0; run = order.next_run()) {
    const auto rows = patterns.rows(run.first_row, run.first_row != 0 ? run.launches : 0);
    for (size_t at = 0, end = 0; at < rows.size(); at = end) {
      end = at + take_alike(rows.size() - at);
      // Of the first call and the last one the stretch may have a part, or others may follow.
      const auto of = patterns.calls(run.first_row + at, run.first_row + end);
      const auto part = [&](const PatternCalls::Call& call) {
        const uint64_t first = std::max<uint64_t>(call.begin, run.first_row + at);
        const uint64_t next = std::min<uint64_t>(call.end, run.first_row + end);
        if (call.numbered && first == call.begin) last += call.step;
        add(call.path, call.numbered ? last : 0, next - first,
            PatternCalls::begun(rows.subspan(first - run.first_row, next - first)));
      };
      part(of.front());
      if (of.size() > 2) {
        give();
        last = whole(of.subspan(1, of.size() - 2), last, its_graph);
      }
      if (of.size() > 1) part(of.back());
    }
    for (size_t i = rows.size(); i < run.launches; ++i) {
      take_alike(1);
      if (run.first_row == 0) {
        const LaunchOrder::Named named = order.next_named();
        const uint64_t sequence = sequences.next();
        if (sequence != 0) last = sequence;
        add(named.path, sequence, 1, named.call ? 1 : 0);
      } else {
        add(PatternTable::Row::kUndefined, 0, 1, 0);
      }
    }
  }
  give();
}

}  // namespace flopinj::reduce
