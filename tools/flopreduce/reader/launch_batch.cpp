#include "reader/launch_batch.h"

#include <algorithm>
#include <protozero/exception.hpp>
#include <protozero/pbf_message.hpp>
#include <utility>

#include "flop_trace.pb.h"
#include "flop_trace_fields.h"
#include "reader/packed_columns.h"

namespace flopinj::reduce {
namespace {

using Field = trace_fields::LaunchBatchField;

}  // namespace

protozero::data_view* LaunchBatchReader::view_of(uint32_t field) {
  constexpr std::pair<Field, protozero::data_view Views::*> kColumns[] = {
      {Field::signature, &Views::signature},
      {Field::range_path_run, &Views::range_path},
      {Field::sequence_run, &Views::sequence},
      {Field::gap_ns, &Views::gap},
      {Field::duration_delta_ns, &Views::duration},
      {Field::untimed_delta, &Views::untimed},
      {Field::graph_run, &Views::graph},
      {Field::windowed_run, &Views::windowed},
      {Field::pattern_run, &Views::pattern},
      {Field::step_run, &Views::step}};
  for (const auto& [of, view] : kColumns)
    if (static_cast<uint32_t>(of) == field) return &(views_.*view);
  return nullptr;
}

// Sets packed_once to false where a column came in several pieces or unpacked, which protobuf
// allows.
bool LaunchBatchReader::read_fields(protozero::data_view body, bool& packed_once) {
  views_ = Views{};
  thread_ = stream_ = 0;
  first_start_ns_ = sequence_base_ = 0;
  protozero::pbf_message<Field> message(body);
  while (message.next()) {
    if (protozero::data_view* column = view_of(static_cast<uint32_t>(message.tag()))) {
      if (message.wire_type() != protozero::pbf_wire_type::length_delimited || !column->empty()) {
        packed_once = false;
        return true;
      }
      *column = message.get_view();
      continue;
    }
    const bool number = message.tag() == Field::thread || message.tag() == Field::stream ||
                        message.tag() == Field::first_start_ns ||
                        message.tag() == Field::sequence_base;
    if (!number) {
      message.skip();
      continue;
    }
    if (message.wire_type() != protozero::pbf_wire_type::varint) return false;
    const uint64_t value = message.get_uint64();
    if (message.tag() == Field::first_start_ns)
      first_start_ns_ = value;
    else if (message.tag() == Field::sequence_base)
      sequence_base_ = value;
    else
      (message.tag() == Field::thread ? thread_ : stream_) = static_cast<uint32_t>(value);
  }
  return true;
}

// How many launches there are, and that every column has them. A run of a pattern's rows takes no
// room of its own, but each launch of it has two values in the columns of times: what a file can
// stand for is bounded by its size.
bool LaunchBatchReader::count_launches() {
  const auto named = count_varints(views_.signature);
  const auto durations = count_varints(views_.duration);
  const auto gaps = count_varints(views_.gap);
  if (!named || !durations || !gaps || *durations != *gaps) return false;
  size_ = views_.gap.empty() ? *named : *gaps;
  if (size_ > kMaxBatchLaunches) return false;
  if (views_.pattern.empty()) {
    if (*named != size_) return false;
  } else {
    if (!count_varints(views_.pattern) || !RunColumn::covers(views_.pattern, size_)) return false;
    size_t in_no_pattern = 0;
    for (PackedColumn runs(views_.pattern); !runs.empty();) {
      const bool named_here = runs.next() == 0;
      const auto count = static_cast<size_t>(runs.next());
      if (count == 0) return false;
      if (named_here) in_no_pattern += count;
    }
    if (in_no_pattern != *named) return false;
  }
  for (const auto& runs : {views_.range_path, views_.sequence})
    if (!count_varints(runs) || !RunColumn::covers(runs, *named)) return false;
  return true;
}

bool LaunchBatchReader::fits() {
  if (!count_launches() || !count_varints(views_.untimed)) return false;
  for (const auto& runs : {views_.graph, views_.windowed, views_.step})
    if (!count_varints(runs) || !RunColumn::covers(runs, size_)) return false;
  PackedColumn untimed(views_.untimed);
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
    const auto read = [this](protozero::data_view from, bool& once) {
      return read_fields(from, once);
    };
    if (read_packed<trace::LaunchBatch>(body, canonical_, read) && fits()) return true;
  } catch (const protozero::exception&) {
  }
  damage.add(Damage::kBadColumns);
  return false;
}

}  // namespace flopinj::reduce
