#include "reader/pattern_table.h"

namespace flopinj::reduce {
namespace {

// One value for each row; fewer or none where the runs do not fit.
std::vector<uint32_t> spread(const google::protobuf::RepeatedField<uint32_t>& runs, size_t rows) {
  std::vector<uint32_t> values;
  for (int i = 0; i + 1 < runs.size(); i += 2) {
    if (runs[i + 1] > rows - values.size()) return {};
    values.insert(values.end(), runs[i + 1], runs[i]);
  }
  return values;
}

}  // namespace

void PatternTable::add(const trace::Interned::Pattern& message, DamageLog& damage) {
  const auto rows = static_cast<size_t>(message.signature_size());
  const auto paths = spread(message.range_path_run(), rows);
  auto steps = spread(message.sequence_step_run(), rows);
  if (message.sequence_step_run_size() == 0) steps.resize(rows);
  auto calls = spread(message.call_run(), rows);
  if (message.call_run_size() == 0) calls.resize(rows);
  if (paths.size() != rows || steps.size() != rows || calls.size() != rows) {
    damage.add(Damage::kBadColumns);
    return;
  }
  for (size_t i = 0; i < rows; ++i) {
    const uint32_t signature = message.signature(static_cast<int>(i));
    if (set(uint64_t{message.first_row()} + i, {signature, paths[i], steps[i], calls[i] != 0}))
      continue;
    damage.add(Damage::kBadId, rows - i);
    return;
  }
}

}  // namespace flopinj::reduce
