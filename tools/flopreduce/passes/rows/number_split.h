// What sequence numbers show of the launches of a batch.
//
// Launches without numbers (gradients were off: rotary embeddings, masks) ran in a forward pass
// where the launches before and after them on their thread and stream did, in whatever batch these
// are. Where weights are among their operands they may be a model of their own, such as a teacher,
// and are unclear. What is before the first numbered launch of a recording, or behind the last,
// inside of a pass, is too, and so are layers without numbers in an optimizer's step that runs
// forward passes. Products of no weights before a pass may make its weights (spectral norm), and
// are unclear with what runs beside them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "phases/forward_numbers.h"
#include "phases/operators.h"
#include "reader/launch_batch.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// The tables that the numbers were found from; they must outlive their users.
struct NumberSource {
  const TraceTables& tables;
  const OperatorMap& operators;
  const ForwardNumbers& numbers;
};

// Cuts a batch where numbers begin to show something else. One per reading thread.
class NumberSplit {
 public:
  struct Cut {
    size_t end = 0;  // launches before it, from the cut before on
    NumberTells tells = NumberTells::kNothing;
    bool settled = true;  // whatever the numbers around show
  };
  // Without a source, kNothing for all.
  explicit NumberSplit(const NumberSource* source) : source_(source) {}
  // Of all launches of a batch, in order: one cut or more, and the last one ends where the batch
  // does. Valid until the next call.
  const std::vector<Cut>& of(uint32_t trace, const LaunchBatchReader& batch);

 private:
  void add(const Cut& cut);
  bool may_run_forward(const ForwardNumbers::Passes& passes, uint32_t path);
  Multiplies multiplies(uint32_t path);
  bool may_lack_node(uint32_t trace, uint32_t path, uint64_t number);
  uint32_t function_of(uint32_t path);
  bool any_functions();
  void find_numbered(uint32_t trace, std::span<const LaunchCall> calls);

  const NumberSource* source_;
  std::unordered_map<uint32_t, Multiplies> multiplies_;  // by path
  std::unordered_map<uint32_t, uint32_t> functions_;     // by path: program_function_of()
  std::optional<bool> any_functions_;
  // Rules of ranges around the passes of a thread.
  std::unordered_map<const ForwardNumbers::Passes*, std::set<uint32_t>> around_;
  std::optional<PatternCalls> pattern_calls_;  // of the trace at hand
  std::vector<LaunchCall> calls_;
  std::vector<bool> numbered_;  // of find_numbered()
  std::vector<Cut> cuts_;
};

}  // namespace flopinj::reduce
