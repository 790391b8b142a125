// What sequence numbers tell of the launches of a batch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "phases/forward_numbers.h"
#include "phases/operators.h"
#include "reader/launch_batch.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// What the numbers were found from; all must outlive who uses it.
struct NumberSource {
  const TraceTables& tables;
  const OperatorMap& operators;
  const ForwardNumbers& numbers;
};

// Of one thread of a trace, one launch after another.
class ThreadNumbers {
 public:
  ThreadNumbers(const NumberSource& source, uint32_t trace, uint32_t thread)
      : source_(source),
        trace_(source.tables.traces[trace]),
        passes_(source.numbers.of(trace, thread)),
        reader_(passes_) {}
  // Whether any number tells something.
  bool any() const { return passes_ != nullptr; }
  // By the trace's own id of the range path; `number` as ForwardNumbers has it.
  NumberTells of(uint32_t path_id, uint64_t number) {
    return reader_.tells(number,
                         [&](const ForwardNumbers::Pass& pass) { return is_of(pass, path_id); });
  }

 private:
  bool is_of(const ForwardNumbers::Pass& pass, uint32_t path_id) const;

  const NumberSource& source_;
  const TraceState& trace_;
  const ForwardNumbers::Passes* passes_;
  NumberReader reader_;
};

// Cuts a batch where what numbers tell changes. One per reading thread.
class NumberSplit {
 public:
  struct Cut {
    size_t end = 0;  // launches before it, from the cut before on
    NumberTells tells = NumberTells::kNothing;
  };
  // Nothing is told without a source.
  explicit NumberSplit(const NumberSource* source) : source_(source) {}
  // Of all launches of the batch, in order: one cut or more, and the last one ends where the batch
  // does. Valid until the next call.
  const std::vector<Cut>& of(uint32_t trace, const LaunchBatchReader& batch);

 private:
  const NumberSource* source_;
  std::vector<Cut> cuts_;
};

}  // namespace flopinj::reduce
