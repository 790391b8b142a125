#include "reader/launch_batch.h"

#include <protozero/exception.hpp>
#include <protozero/pbf_message.hpp>

#include "flop_trace.pb.h"
#include "flop_trace_fields.h"
#include "reader/packed_columns.h"

namespace flopinj::reduce {

uint64_t& LastDurations::of(uint32_t signature) {
  if (signature >= kDense) return beyond_[signature];
  Entry& entry = dense_[signature];
  if (entry.epoch != epoch_) entry = {epoch_, 0};
  return entry.ns;
}

// Sets packed_once to false where a column came in several pieces or unpacked, which protobuf
// allows.
bool LaunchBatchReader::read_fields(protozero::data_view body, bool& packed_once) {
  using Field = trace_fields::LaunchBatchField;
  views_ = Views{};
  thread_ = stream_ = 0;
  first_start_ns_ = 0;
  protozero::pbf_message<Field> message(body);
  while (message.next()) {
    protozero::data_view* column = nullptr;
    switch (message.tag()) {
      case Field::signature:
        column = &views_.signature;
        break;
      case Field::range_path_run:
        column = &views_.range_path;
        break;
      case Field::sequence_run:
        column = &views_.sequence;
        break;
      case Field::gap_ns:
        column = &views_.gap;
        break;
      case Field::duration_delta_ns:
        column = &views_.duration;
        break;
      case Field::untimed_delta:
        column = &views_.untimed;
        break;
      case Field::graph_run:
        column = &views_.graph;
        break;
      case Field::windowed_run:
        column = &views_.windowed;
        break;
      case Field::thread:
      case Field::stream:
        if (message.wire_type() != protozero::pbf_wire_type::varint) return false;
        (message.tag() == Field::thread ? thread_ : stream_) = message.get_uint32();
        continue;
      case Field::first_start_ns:
        if (message.wire_type() != protozero::pbf_wire_type::varint) return false;
        first_start_ns_ = message.get_uint64();
        continue;
      default:
        message.skip();
        continue;
    }
    if (message.wire_type() != protozero::pbf_wire_type::length_delimited || !column->empty()) {
      packed_once = false;
      return true;
    }
    *column = message.get_view();
  }
  return true;
}

bool LaunchBatchReader::fits() {
  const auto size = count_varints(views_.signature);
  const auto durations = count_varints(views_.duration);
  const auto gaps = count_varints(views_.gap);
  if (!size || !durations || !gaps || !count_varints(views_.untimed)) return false;
  size_ = *size;
  times_absent_ = views_.duration.empty() && views_.gap.empty();
  if (!times_absent_ && (*durations != size_ || *gaps != size_)) return false;
  for (const auto& runs : {views_.range_path, views_.graph, views_.windowed, views_.sequence})
    if (!count_varints(runs) || !RunColumn::covers(runs, size_)) return false;
  Column untimed(views_.untimed);
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
