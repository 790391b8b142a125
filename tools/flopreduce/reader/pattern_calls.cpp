#include "reader/pattern_calls.h"

#include <protozero/varint.hpp>

namespace flopinj::reduce {

PatternCalls::PatternCalls(const PatternTable& patterns) : patterns_(&patterns) {
  const auto rows = patterns.rows(1, PatternTable::kMax);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    const PatternTable::Row& row = rows[i];
    const bool numbered = row.sequence_step != 0;
    const int64_t step = numbered ? protozero::decode_zigzag64(row.sequence_step - 1) : 0;
    if (calls_.empty() || calls_.back().path != row.path || calls_.back().numbered != numbered ||
        step != 0)
      calls_.push_back({i + 1, i + 1, row.path, 0, static_cast<uint64_t>(step), numbered});
    ++calls_.back().end;
    calls_.back().calls += row.call ? 1 : 0;
  }
}

}  // namespace flopinj::reduce
