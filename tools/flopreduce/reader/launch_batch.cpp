#include "reader/launch_batch.h"

#include "flop_trace.pb.h"

namespace flopinj::reduce {
namespace {

using Field = trace_fields::LaunchBatchField;

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

std::span<const LaunchCall> LaunchBatchReader::calls(const PatternTable& patterns,
                                                     std::vector<LaunchCall>& room) const {
  if (room.size() < size_) room.resize(size_);
  LaunchCall* to = room.data();
  RunColumn sequences(column(Field::sequence_run)), graphs(column(Field::graph_run));
  SequenceSteps steps(fields_.number(Field::sequence_base));
  size_t alike = 0;  // launches at hand that are all from graphs, or none of them is
  bool graph = false;
  LaunchCall call;
  const auto launch = [&](uint32_t path, uint64_t sequence, bool begins) {
    if (alike == 0) {
      graph = graphs.peek() != 0;
      alike = graphs.run(size_);
      graphs.skip(alike);
    }
    --alike;
    if (path != call.path || sequence != call.sequence || graph != call.graph) {
      if (call.launches > 0) *to++ = call;
      call = {sequence, path, 0, 0, graph};
    }
    ++call.launches;
    call.calls += begins ? 1 : 0;
  };
  LaunchOrder order = this->order();
  for (auto run = order.next_run(); run.launches > 0; run = order.next_run()) {
    const auto rows = patterns.rows(run.first_row, run.first_row != 0 ? run.launches : 0);
    for (const PatternTable::Row& row : rows)
      launch(row.path, steps.after(row.sequence_step), row.call);
    for (size_t i = rows.size(); i < run.launches; ++i)
      if (run.first_row == 0) {
        const LaunchOrder::Named named = order.next_named();
        launch(named.path, steps.is(sequences.next()), named.call);
      } else {
        launch(PatternTable::Row::kUndefined, 0, false);
      }
  }
  if (call.launches > 0) *to++ = call;
  return {room.data(), to};
}

}  // namespace flopinj::reduce
