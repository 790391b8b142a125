// The launches of each process by thread, stream, range path, phase rule and signature: what a
// report has joined over processes, taken apart again for tables of single ranks. A pass of its
// own, made where such a table is asked for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "passes/merged_classes.h"
#include "passes/packets/revisions.h"
#include "passes/packets/segments.h"
#include "passes/packets/trace_file.h"
#include "passes/rows/launch_key.h"
#include "passes/rows/number_split.h"
#include "passes/rows/repeating_table.h"
#include "phases/phases.h"
#include "reader/launch_batch.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

class SingleSteps;

class FactPass {
 public:
  static constexpr size_t kMaxRowsOfTrace = 1U << 20;
  static constexpr size_t kMaxRows = 1U << 24;  // of all traces: 2 GB

  // All must outlive this. Without `numbers`, sequence numbers are not used.
  FactPass(const TraceTables& tables, PhaseMap& phases, const NumberSource* numbers);
  // Fills Totals::facts and Totals::step_times. Reads one trace after another, so that no more than
  // one has a table that grows. The passes before logged damage.
  void run(const Segments& segments, const Revisions& revisions, std::vector<TraceFile>& files,
           Totals& totals);

 private:
  void packet(uint32_t trace, const Packet& packet, SingleSteps& steps);
  void batch(uint32_t trace, const LaunchBatchReader& batch, SingleSteps& steps);
  void add(const LaunchKey& key, const Counts& counts);
  void take_rows(uint32_t trace, Totals& totals);
  FactRow row_of(uint32_t trace, const LaunchKey& key);

  const TraceTables& tables_;
  PhaseMap& phases_;
  NumberSplit split_;
  MergedClasses classes_;
  LaunchList list_;
  RepeatingTable<LaunchKey, Counts, LaunchKey::Hash> rows_{
      kMaxRowsOfTrace};    // of the trace at hand
  uint64_t left_out_ = 0;  // launches that found no room
};

}  // namespace flopinj::reduce
