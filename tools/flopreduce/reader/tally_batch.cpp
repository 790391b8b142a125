#include "reader/tally_batch.h"

#include <protozero/exception.hpp>
#include <protozero/pbf_message.hpp>

#include "flop_trace.pb.h"
#include "flop_trace_fields.h"
#include "reader/packed_columns.h"

namespace flopinj::reduce {
namespace {

using Field = trace_fields::TallyBatchField;
constexpr size_t kFirst = static_cast<size_t>(Field::thread);
constexpr size_t kRequired = 7;  // thread .. gpu_time_ns; the other columns may be absent
static_assert(static_cast<size_t>(Field::gpu_time_ns) == kFirst + kRequired - 1);
static_assert(static_cast<size_t>(Field::longest_above) == kFirst + 12);

}  // namespace

bool TallyBatchReader::read_fields(protozero::data_view body, bool& packed_once) {
  views_ = {};
  protozero::pbf_message<Field> message(body);
  while (message.next()) {
    const auto tag = static_cast<size_t>(message.tag());
    if (tag < kFirst || tag >= kFirst + kColumns) {
      message.skip();
      continue;
    }
    auto& column = views_[tag - kFirst];
    if (message.wire_type() != protozero::pbf_wire_type::length_delimited || !column.empty()) {
      packed_once = false;
      return true;
    }
    column = message.get_view();
  }
  return true;
}

bool TallyBatchReader::fits() {
  const auto size = count_varints(views_[0]);
  if (!size) return false;
  left_ = *size;
  for (size_t i = 0; i < kColumns; ++i) {
    if (i >= kRequired && views_[i].empty()) {
      columns_[i] = PackedColumn();
      continue;
    }
    if (count_varints(views_[i]) != size) return false;
    columns_[i] = PackedColumn(views_[i]);
  }
  return true;
}

bool TallyBatchReader::open(protozero::data_view body, DamageLog& damage) {
  try {
    const auto read = [this](protozero::data_view from, bool& once) {
      return read_fields(from, once);
    };
    if (read_packed<trace::TallyBatch>(body, canonical_, read) && fits()) return true;
  } catch (const protozero::exception&) {
  }
  damage.add(Damage::kBadColumns);
  return false;
}

bool TallyBatchReader::next(TallyRow& row) {
  if (left_ == 0) return false;
  --left_;
  row.thread = columns_[0].next32();
  row.stream = columns_[1].next32();
  row.signature = columns_[2].next32();
  row.range_path = columns_[3].next32();
  row.launches = columns_[4].next();
  row.timed = columns_[5].next();
  row.gpu_time_ns = columns_[6].next();
  row.graph_launches = columns_[7].next();
  row.windowed = columns_[8].next() != 0;
  const uint64_t tells = columns_[9].next();
  row.in_step = columns_[10].next() != 0;
  const uint64_t below = columns_[11].next();
  const uint64_t above = columns_[12].next();
  row.times = ShortestLongest::of_tally(row.timed, row.gpu_time_ns, below, above);
  row.number_tells = tells < kNumberTells ? static_cast<NumberTells>(tells) : NumberTells::kNothing;
  return true;
}

}  // namespace flopinj::reduce
