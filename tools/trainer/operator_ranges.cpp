#include "operator_ranges.h"

namespace trainer {

std::string OperatorRange::text(OperatorCounter& counter, const char* name, uint64_t sequence,
                                const Sizes& sizes) {
  std::string text = name;
  if (sequence != kNoSequence) text += ", seq = " + std::to_string(sequence);
  text += ", op_id = " + std::to_string(counter.next_id++);
  if (sizes.empty()) return text;
  text += ", sizes = [";
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += i == 0 ? "[" : ", [";
    for (size_t d = 0; d < sizes[i].size(); ++d)
      text += (d == 0 ? "" : ", ") + std::to_string(sizes[i][d]);
    text += "]";
  }
  return text + "]";
}

}  // namespace trainer
