// Pass two, and each pass after it: all segments, on several threads.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "passes/packets/revisions.h"
#include "passes/packets/segments.h"
#include "passes/packets/trace_order.h"
#include "passes/rows/launch_consumer.h"
#include "passes/rows/row_table.h"
#include "reader/damage.h"
#include "reader/input.h"
#include "tables/totals.h"

namespace flopinj::reduce {

// An input of a report.
struct TraceFile {
  std::unique_ptr<Input> input;
  uint32_t first_sequence = 0;
  DamageLog damage;
  TraceOrder order;
  bool simulated = false;  // as its first header says
};

// Consumers, one of each thread, added up in the first one.
template <class Consumer, class Any>
Consumer& in_first(std::vector<std::unique_ptr<Any>>& consumers) {
  auto& all = static_cast<Consumer&>(*consumers.front());
  for (; consumers.size() > 1; consumers.pop_back())
    all.add(static_cast<Consumer&>(*consumers.back()));
  return all;
}

// The result is the same, to the byte of a report, whatever the number of threads: sums do not
// depend on their order, and the times of segments are joined in the files' order.
struct SecondPass {
  SharedTables& shared;
  const Segments& segments;
  const Revisions& revisions;
  std::vector<TraceFile>& files;
  unsigned jobs = 1;      // threads, at least 1
  bool progress = false;  // a bar, where standard error is a terminal
  // Makes a consumer for each thread; may be empty. Only one thread reads segments in their order.
  std::function<std::unique_ptr<LaunchConsumer>()> consumer = {};
  bool only_consumers = false;  // nobody asks for busy times
  // With it, by trace: one thread has all launches of these traces, in their order. Where this is
  // not empty run() reads but once.
  std::vector<bool> whole_traces = {};
  // By trace: only these are read. Empty: all are.
  std::vector<bool> only_traces = {};

  // After run().
  bool depends_on_threads = false;  // a table was too small for all rows
  std::vector<std::unique_ptr<LaunchConsumer>> consumers = {};
  // That of recordings in summaries by trace, that of others by file.
  std::vector<DamageLog> damage_of_trace = {}, damage_of_file = {};

  Totals run();
  template <class Consumer>
  Consumer& joined() {
    return in_first<Consumer>(consumers);
  }
};

}  // namespace flopinj::reduce
