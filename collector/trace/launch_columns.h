// Launches of one thread on one stream as columns, the way LaunchBatch carries them; and rows of a
// tally.
#pragma once
#include <collector/identity/ids.h>
#include <collector/identity/launch_record.h>
#include <collector/trace/launch_patterns.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flopinj {

// A launch with all that is known of it when it is written.
struct TimedLaunch {
  SignatureId signature;
  PathId path;
  uint64_t sequence_plus_1 = 0;
  uint64_t start_ns = 0, end_ns = 0;  // both 0: untimed
  uint64_t called_ns = 0;             // by the program; 0: not known
  Pause pause;                        // of its thread before the call, in ns, if there is one
  uint32_t step = 0;                  // training step that it is in; 0: none
  bool graph = false, windowed = false;
  bool call = false;   // the first one of a call of an operator
  bool found = false;  // by its activity record; no launching thread has counted it
  bool timed() const { return start_ns != 0 || end_ns != 0; }
};

// Run-length pairs as the format has them.
template <class T>
struct Runs {
  std::vector<std::pair<T, uint32_t>> pairs;
  void add(T value) {
    if (!pairs.empty() && pairs.back().first == value)
      ++pairs.back().second;
    else
      pairs.emplace_back(value, 1);
  }
  // True when every value so far is T{}: the column may then be left out.
  bool trivial() const {
    return pairs.empty() || (pairs.size() == 1 && pairs.front().first == T{});
  }
};

// Launches in one batch: at the most bytes that a launch can take in all columns (about 100), a
// packet stays below its limit of 4 MiB.
inline constexpr size_t kMaxBatchLaunches = 32'768;

class LaunchColumns {
 public:
  LaunchColumns(ThreadId t, StreamId s) : thread(t), stream(s) {}
  // False, and nothing is added, when the batch is full.
  [[nodiscard]] bool add(const TimedLaunch&);
  size_t size() const { return rows.size(); }
  bool full() const { return size() >= kMaxBatchLaunches; }
  bool any_timed() const { return any_timed_; }
  void clear();  // keeps the capacity, and where the sequence numbers and the pattern have come to

  ThreadId thread;
  StreamId stream;
  std::vector<PatternRow> rows;
  std::vector<uint64_t> sequence_plus_1;
  Runs<uint32_t> graph, windowed, step;
  uint64_t first_start_ns = 0;
  uint64_t sequence_base = 0;  // + 1, of the last launch before these that has one
  std::vector<int64_t> gap_ns, duration_delta_ns;
  std::vector<uint32_t> untimed_delta;
  std::vector<uint64_t> called_before, pause;  // as in the format
  bool any_called = false;
  uint32_t next_row = 0;  // for LaunchPatterns

 private:
  uint32_t step_to(uint64_t sequence);  // the number + 1

  uint64_t last_end_ns_ = 0;
  void add_call(const TimedLaunch&, uint32_t index);

  bool any_timed_ = false;
  uint32_t last_untimed_ = 0, last_paused_ = 0;
  uint64_t last_sequence_ = 0;
  std::unordered_map<uint32_t, int64_t> last_duration_;  // by signature
};

// A row of TallyBatch.
struct TallyRow {
  ThreadId thread;
  StreamId stream;
  SignatureId signature;
  PathId path;
  bool windowed = false;
  bool in_step = false;  // a training step
  uint64_t launches = 0, timed = 0, gpu_time_ns = 0, graph_launches = 0, calls = 0;
  uint64_t shortest_ns = UINT64_MAX, longest_ns = 0;  // of those timed, if any

  // The time of one launch.
  void add_time(uint64_t ns) {
    ++timed;
    gpu_time_ns += ns;
    shortest_ns = std::min(shortest_ns, ns);
    longest_ns = std::max(longest_ns, ns);
  }
};

}  // namespace flopinj
