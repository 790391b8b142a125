// TallyBatch as a sequence of rows.
#pragma once
#include <array>
#include <cstdint>

#include "reader/batch_fields.h"
#include "reader/columns.h"
#include "reader/damage.h"
#include "reader/number_tells.h"
#include "support/shortest_longest.h"

namespace flopinj::reduce {

struct TallyRow {
  uint32_t thread = 0;
  uint32_t stream = 0;
  uint32_t signature = 0;
  uint32_t range_path = 0;
  uint64_t launches = 0;
  uint64_t timed = 0;
  uint64_t gpu_time_ns = 0;
  uint64_t graph_launches = 0;
  uint64_t calls = 0;     // of an operator, that began among the launches
  ShortestLongest times;  // of those timed
  bool windowed = false;
  NumberTells number_tells = NumberTells::kNothing;
  bool in_step = false;

  // No kernel runs longer than kLongestKernelNs: the time is a damaged number then.
  bool has_possible_time() const;
};

class TallyBatchReader {
 public:
  TallyBatchReader();
  // As LaunchBatchReader::open.
  bool open(protozero::data_view body, DamageLog& damage);
  bool next(TallyRow& row);

 private:
  static constexpr size_t kColumns = 14;
  bool fits();

  BatchFields fields_;
  std::array<PackedColumn, kColumns> columns_;
  size_t left_ = 0;
};

}  // namespace flopinj::reduce
