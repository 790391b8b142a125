#include "reader/launch_batch.h"

#include <protozero/exception.hpp>

#include "flop_trace.pb.h"

namespace flopinj::reduce {
namespace {

using Field = trace_fields::LaunchBatchField;

}  // namespace

LaunchBatchReader::LaunchBatchReader()
    : fields_({.columns = field_bits(Field::signature, Field::range_path_run, Field::sequence_run,
                                     Field::gap_ns, Field::duration_delta_ns, Field::untimed_delta,
                                     Field::graph_run, Field::windowed_run, Field::pattern_run,
                                     Field::step_run),
               .numbers = field_bits(Field::thread, Field::stream, Field::first_start_ns,
                                     Field::sequence_base)}) {}

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
  for (const auto& runs : {column(Field::range_path_run), column(Field::sequence_run)})
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
  return true;
}

bool LaunchBatchReader::open(protozero::data_view body, DamageLog& damage) {
  try {
    if (fields_.read<trace::LaunchBatch>(body) && fits()) return true;
  } catch (const protozero::exception&) {
  }
  damage.add(Damage::kBadColumns);
  return false;
}

}  // namespace flopinj::reduce
