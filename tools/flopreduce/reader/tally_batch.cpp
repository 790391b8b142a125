#include "reader/tally_batch.h"

#include "flop_trace.pb.h"
#include "flop_trace_fields.h"
#include "reader/launch_batch.h"

namespace flopinj::reduce {
namespace {

using Field = trace_fields::TallyBatchField;
constexpr size_t kFirst = static_cast<size_t>(Field::thread);
constexpr size_t kRequired = 7;  // thread .. gpu_time_ns; the other columns may be absent
constexpr uint32_t kColumnBits = field_bits(Field::calls) * 2 - field_bits(Field::thread);
static_assert(static_cast<size_t>(Field::gpu_time_ns) == kFirst + kRequired - 1);
static_assert(static_cast<size_t>(Field::calls) == kFirst + 13);

}  // namespace

bool TallyRow::has_possible_time() const {
  return timed == 0 ? gpu_time_ns == 0 : gpu_time_ns / timed <= kLongestKernelNs;
}

TallyBatchReader::TallyBatchReader() : fields_({.columns = kColumnBits}) {}

bool TallyBatchReader::fits() {
  const auto size = count_varints(fields_.column(kFirst));
  if (!size) return false;
  left_ = *size;
  for (size_t i = 0; i < kColumns; ++i) {
    const protozero::data_view& column = fields_.column(kFirst + i);
    const bool absent = i >= kRequired && column.empty();
    if (!absent && count_varints(column) != size) return false;
    columns_[i] = absent ? PackedColumn() : PackedColumn(column);
  }
  return true;
}

bool TallyBatchReader::open(protozero::data_view body, DamageLog& damage) {
  return fields_.read<trace::TallyBatch>(body, damage, [this] { return fits(); });
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
  row.calls = columns_[13].next();
  row.times = ShortestLongest::of_tally(row.timed, row.gpu_time_ns, below, above);
  row.number_tells = tells < kNumberTells ? static_cast<NumberTells>(tells) : NumberTells::kNothing;
  return true;
}

}  // namespace flopinj::reduce
