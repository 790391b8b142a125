#include "passes/rows/number_split.h"

namespace flopinj::reduce {

// One call of an operator, or what runs inside of one call of a function.
bool ThreadNumbers::is_of(const ForwardNumbers::Pass& pass, uint32_t path_id) const {
  uint32_t path = path_id == 0 ? PathTable::kRoot : trace_.paths.get(path_id);
  if (path == kNoIndex) return false;
  if (source_.operators.operator_of(path) == pass.first_operator) return true;
  // Paths have higher numbers than what is around them.
  if (pass.first_function == kNoIndex) return false;
  while (path > pass.first_function) path = source_.tables.paths[path].parent;
  return path == pass.first_function;
}

const std::vector<NumberSplit::Cut>& NumberSplit::of(uint32_t trace,
                                                     const LaunchBatchReader& batch) {
  cuts_.clear();
  if (source_ == nullptr || source_->numbers.of(trace, batch.thread()) == nullptr) {
    cuts_.push_back({batch.size(), NumberTells::kNothing});
    return cuts_;
  }
  ThreadNumbers numbers(*source_, trace, batch.thread());
  size_t end = 0;
  batch.for_each_sequence(source_->tables.traces[trace].patterns,
                          [&](uint32_t path_id, uint64_t number, bool graph, uint64_t launches) {
                            // A graph repeats the numbers of its capture.
                            const NumberTells tells = numbers.of(path_id, graph ? 0 : number);
                            end += static_cast<size_t>(launches);
                            if (!cuts_.empty() && cuts_.back().tells == tells)
                              cuts_.back().end = end;
                            else
                              cuts_.push_back({end, tells});
                          });
  if (cuts_.empty()) cuts_.push_back({});
  return cuts_;
}

}  // namespace flopinj::reduce
