// How long the launches of each kernel took: for tables of kernels, and for what a summary keeps of
// it (the format's KernelDurations). Launches made while counters were read are left out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "flop_trace.pb.h"
#include "passes/rows/durations.h"
#include "passes/rows/launch_consumer.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

class KernelDurations final : public LaunchConsumer {
 public:
  // `tables` must outlive this.
  explicit KernelDurations(const TraceTables& tables);
  void launches(const RowTable& rows, const LaunchPiece& piece) override;
  void tally(const RowTable& rows, uint32_t row, const TallyRow& tally) override;
  void packet(uint32_t trace, const Packet& packet) override;
  void add(const KernelDurations& o) { durations_.add(o.durations_); }
  // Fills Totals::launch_times.
  void give(Totals& totals) const;
  // Of the launches of one trace, whose rows these are.
  std::vector<trace::KernelDurations> messages(RowTable& rows) const;

 private:
  const TraceTables& tables_;
  // A number for each kernel, as the names of signatures say it.
  std::vector<uint32_t> names_;   // by kernel: NamePool; kNoIndex: not known
  std::vector<uint32_t> kernel_;  // by signature
  Durations durations_;
};

}  // namespace flopinj::reduce
