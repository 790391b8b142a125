#include "reader/launch_batch.h"

#include <call_times.h>

#include <protozero/varint.hpp>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "flop_trace.pb.h"

namespace flopinj::reduce {
namespace {

using Field = trace_fields::LaunchBatchField;

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

}  // namespace

LaunchBatchReader::LaunchBatchReader()
    : fields_({.columns =
                   field_bits(Field::signature, Field::range_path_run, Field::sequence_run,
                              Field::gap_ns, Field::duration_delta_ns, Field::untimed_delta,
                              Field::graph_run, Field::windowed_run, Field::pattern_run,
                              Field::step_run, Field::call_run, Field::called_before, Field::pause),
               .numbers = field_bits(Field::thread, Field::stream, Field::first_start_ns,
                                     Field::sequence_base, Field::clock_error_ns)}) {}

// How many launches there are, and that every column has them. A run of a pattern's rows takes no
// room of its own, but each launch of it has two values in the columns of times: what a file can
// stand for is bounded by its size.
bool LaunchBatchReader::count_launches() {
  const auto named = count_varints(column(Field::signature));
  const auto durations = count_varints(column(Field::duration_delta_ns));
  const auto gaps = count_varints(column(Field::gap_ns));
  if (!named || !durations || !gaps || *durations != *gaps) return false;
  size_ = column(Field::gap_ns).empty() ? *named : *gaps;
  if (size_ > kMaxBatchLaunches) return false;
  if (column(Field::pattern_run).empty()) {
    if (*named != size_) return false;
  } else {
    if (!count_varints(column(Field::pattern_run)) ||
        !RunColumn::covers(column(Field::pattern_run), size_))
      return false;
    size_t in_no_pattern = 0;
    for (PackedColumn runs(column(Field::pattern_run)); !runs.empty();) {
      const bool named_here = runs.next() == 0;
      const auto count = static_cast<size_t>(runs.next());
      if (count == 0) return false;
      if (named_here) in_no_pattern += count;
    }
    if (in_no_pattern != *named) return false;
  }
  for (const auto& runs :
       {column(Field::range_path_run), column(Field::sequence_run), column(Field::call_run)})
    if (!count_varints(runs) || !RunColumn::covers(runs, *named)) return false;
  return true;
}

bool LaunchBatchReader::fits() {
  if (!count_launches() || !count_varints(column(Field::untimed_delta))) return false;
  for (const auto& runs :
       {column(Field::graph_run), column(Field::windowed_run), column(Field::step_run)})
    if (!count_varints(runs) || !RunColumn::covers(runs, size_)) return false;
  PackedColumn untimed(column(Field::untimed_delta));
  uint64_t index = 0;
  for (bool first = true; !untimed.empty(); first = false) {
    const uint64_t step = untimed.next();
    if ((!first && step == 0) || step >= size_ || index >= size_ - step) return false;
    index += step;
  }
  const auto pauses = count_varints(column(Field::pause));
  return count_varints(column(Field::called_before)) && pauses && *pauses % 4 == 0;
}

bool LaunchBatchReader::open(protozero::data_view body, DamageLog& damage, uint32_t packet) {
  packet_ = packet;
  return fields_.read<trace::LaunchBatch>(body, damage, [this] { return fits(); });
}

// One launch with all that its batch says of it.
struct LaunchBatchReader::Launch {
  struct Pause {
    uint64_t path = 0, since = 0, length = 0;  // as in the column
  };
  uint64_t sequence = 0;
  uint32_t signature = 0, path = 0, step = 0;
  bool call = false, timed = false, graph = false, windowed = false, skipped = false;
  uint64_t start_ns = 0, duration_ns = 0;
  uint64_t called_before = 0;
  std::vector<Pause> pauses = {};

  bool has_sound_time() const { return timed && duration_ns <= kLongestKernelNs; }
};

std::vector<LaunchBatchReader::Launch> LaunchBatchReader::launches(
    const PatternTable& patterns) const {
  std::vector<Launch> all;
  all.reserve(size_);
  RunColumn sequences(column(Field::sequence_run));
  SequenceSteps steps(fields_.number(Field::sequence_base));
  LaunchOrder order = this->order();
  for (auto run = order.next_run(); run.launches > 0; run = order.next_run()) {
    for (size_t i = 0; i < run.launches; ++i) {
      Launch& launch = all.emplace_back();
      if (run.first_row == 0) {
        const LaunchOrder::Named named = order.next_named();
        launch.signature = named.signature;
        launch.path = named.path;
        launch.call = named.call;
        launch.sequence = steps.is(sequences.next());
      } else {
        const PatternTable::Row row = patterns.get(run.first_row + i);
        launch.signature = row.signature;
        launch.path = row.path;
        launch.call = row.call;
        launch.sequence = steps.after(row.sequence_step);
      }
    }
  }
  for_each_stretch([&](const Stretch& alike) {
    for (size_t i = alike.begin; i < alike.end; ++i) {
      all[i].timed = alike.timed;
      all[i].graph = alike.graph;
      all[i].windowed = alike.windowed;
      all[i].step = alike.step;
    }
  });
  note_times(all);
  PackedColumn pause = pauses();
  for (uint64_t at = 0; !pause.empty();) {
    at += pause.next();
    const Launch::Pause one{pause.next(), pause.next(), pause.next()};
    if (at < all.size()) all[at].pauses.push_back(one);
  }
  return all;
}

void LaunchBatchReader::note_times(std::vector<Launch>& launches) const {
  if (!has_times()) return;
  PackedColumn gaps = this->gaps(), durations = this->durations(), called = called_before();
  std::unordered_map<uint32_t, uint64_t> last;  // by signature
  uint64_t now = first_start_ns();
  bool first = true;
  for (Launch& launch : launches) {
    const int64_t gap = gaps.next_signed(), longer = durations.next_signed();
    if (!launch.timed) continue;
    if (std::exchange(first, false) || gap >= kLeastCalledGapNs)
      launch.called_before = called.next();
    uint64_t& before = last[launch.signature];
    launch.start_ns = now + static_cast<uint64_t>(gap);
    launch.duration_ns = before + static_cast<uint64_t>(longer);
    if (!launch.has_sound_time()) continue;
    before = launch.duration_ns;
    now = launch.start_ns + launch.duration_ns;
  }
}

void LaunchBatchReader::write(const std::vector<Launch>& launches) {
  trace::LaunchBatch batch;
  const bool calls = has_calls(), times = has_times();
  batch.set_thread(thread());
  batch.set_stream(stream());
  batch.set_clock_error_ns(clock_error_ns());
  batch.set_first_start_ns(first_start_ns());
  const auto add_run = [](auto* runs, auto value) {
    using Value = std::remove_cvref_t<decltype(runs->Get(0))>;
    const int size = runs->size();
    if (size > 0 && runs->Get(size - 2) == static_cast<Value>(value))
      runs->Set(size - 1, runs->Get(size - 1) + 1);
    else
      runs->Add(static_cast<Value>(value)), runs->Add(1);
  };
  std::unordered_map<uint32_t, uint64_t> last;
  uint64_t now = first_start_ns(), untimed = 0, paused = 0, index = 0;
  bool first = true;
  for (const Launch& launch : launches) {
    batch.add_signature(launch.signature);
    add_run(batch.mutable_range_path_run(), launch.path);
    add_run(batch.mutable_sequence_run(), launch.sequence);
    add_run(batch.mutable_call_run(), launch.call ? 1 : 0);
    add_run(batch.mutable_graph_run(), launch.graph ? 1 : 0);
    add_run(batch.mutable_windowed_run(), launch.windowed ? 1 : 0);
    add_run(batch.mutable_step_run(), launch.step);
    if (times) {
      uint64_t& before = last[launch.signature];
      const auto gap = launch.timed ? static_cast<int64_t>(launch.start_ns - now) : 0;
      batch.add_gap_ns(gap);
      batch.add_duration_delta_ns(launch.timed ? static_cast<int64_t>(launch.duration_ns - before)
                                               : 0);
      if (!launch.timed)
        batch.add_untimed_delta(static_cast<uint32_t>(index - std::exchange(untimed, index)));
      else if (calls && (std::exchange(first, false) || gap >= kLeastCalledGapNs))
        batch.add_called_before(launch.called_before);
      if (launch.has_sound_time()) {
        before = launch.duration_ns;
        now = launch.start_ns + launch.duration_ns;
      }
    }
    for (const Launch::Pause& pause : launch.pauses)
      for (const uint64_t number :
           {index - std::exchange(paused, index), pause.path, pause.since, pause.length})
        batch.add_pause(number);
    ++index;
  }
  batch.SerializeToString(&written_);
}

SkippedLaunches LaunchBatchReader::leave_out(const SkippedSteps& skipped,
                                             const PatternTable& patterns) {
  if (!skipped.any()) return {};
  std::vector<Launch> all = launches(patterns);
  // A launch that has no time is taken with the one before it.
  bool before = false;
  SkippedLaunches left_out;
  for (Launch& launch : all) {
    const bool known = launch.step != 0 || launch.has_sound_time();
    launch.skipped = before = known ? skipped.has(launch.step, launch.start_ns) : before;
    if (!launch.skipped) continue;
    ++left_out.launches;
    if (launch.has_sound_time())
      left_out.end_ns = std::max(left_out.end_ns, launch.start_ns + launch.duration_ns);
  }
  if (left_out.launches == 0) return {};
  std::erase_if(all, [](const Launch& launch) { return launch.skipped; });
  write(all);
  const size_t size = written_.size();
  written_.append(kReadAhead, '\0');
  DamageLog none;
  fields_.read<trace::LaunchBatch>(protozero::data_view(written_.data(), size), none,
                                   [this] { return fits(); });
  return left_out;
}

std::span<const LaunchCall> LaunchBatchReader::calls(const PatternCalls& patterns,
                                                     std::vector<LaunchCall>& room) const {
  if (room.size() < size_) room.resize(size_);
  LaunchCall* to = room.data();
  for_each_call(
      patterns, [&](const LaunchCall& call) { *to++ = call; },
      [&](std::span<const PatternCalls::Call> whole, uint64_t last, bool graph) {
        for (const PatternCalls::Call& call : whole) {
          last += call.step;
          *to++ = whole_call(call, last, graph);
        }
        return last;
      });
  return {room.data(), to};
}

}  // namespace flopinj::reduce
