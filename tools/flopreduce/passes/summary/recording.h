// One recorded process, as a summary has it (proto/FORMAT.md).
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flop_trace.pb.h"
#include "flop_trace_fields.h"
#include "passes/packets/revisions.h"
#include "passes/packets/segments.h"
#include "passes/packets/trace_order.h"
#include "passes/rows/at_once.h"
#include "passes/rows/kernel_durations.h"
#include "passes/rows/nearly_in_order.h"
#include "passes/rows/single_steps.h"
#include "passes/sequence/sequence_groups.h"
#include "passes/totals_pass.h"
#include "phases/phases.h"
#include "reader/damage.h"
#include "reader/packet_reader.h"
#include "support/shortest_longest.h"
#include "tables/recorded.h"
#include "tables/step_times.h"
#include "tables/steps.h"

namespace flopinj::reduce {

struct Recording {
  uint64_t session = 0;
  TraceOrder order;  // as the reducer orders its inputs; without a header by what is in it
  uint64_t launches = 0;
  bool ended = false;
  uint64_t damage = 0;  // places that were found damaged
  std::string bytes;
};

// Makes a recording of its segments: trace 0 of the tables. What its launches come to is a reading
// pass like that of reports, and all other packets stay as they are.
class Condenser final : public LaunchConsumer {
 public:
  static constexpr size_t kMostSingleSteps = 1024;

  // All must outlive this. `damage`: all that is found in the recording, which is in it.
  Condenser(SharedTables& shared, const KernelNumbers& kernels, const PhaseMap& phases,
            const Revisions& revisions, DamageLog& damage);
  void segment(const Segment& segment);
  // After the last segment.
  Recording take();

  void launches(const RowTable& rows, const LaunchPiece& piece) override;
  void batch(uint32_t trace, const LaunchBatchReader& batch) override;
  void tally(const RowTable& rows, uint32_t row, const TallyRow& tally) override;
  void packet(uint32_t trace, const Packet& packet) override;

 private:
  using PacketField = trace_fields::TracePacketField;
  struct Row {
    uint32_t of_pass = 0;
    LaunchLane lane;
    uint32_t path = 0, signature = 0;  // ids of the trace
    uint64_t launches = 0, timed = 0, time_ns = 0, graph = 0, calls = 0;
    ShortestLongest times;
  };
  // When a device's kernels ran.
  struct TimeLine {
    explicit TimeLine(size_t kept) : in_order(kept) {}
    NearlyInOrder in_order;
    AtOnceLine at_once;
    void add(const LaunchInTime& launch) { in_order.add(launch, *this); }
    template <typename Write>
    void add(size_t most, Write&& write) {
      in_order.add(most, std::forward<Write>(write), *this);
    }
    // Of NearlyInOrder.
    void launches(std::span<const LaunchInTime> some) { at_once.launches(some); }
    void late(const LaunchInTime& launch) {
      if (launch.row == LaunchInTime::kCopy) at_once.lose_copies();
    }
  };
  void add_to_time_lines(const RowTable& rows, const LaunchPiece& piece);
  void keep(const Packet& packet);
  void define(const Packet& packet);
  void ledger(const Packet& packet);
  void take_rows();
  std::vector<uint32_t> signature_ids();
  void take_device_times();
  void take_steps();
  void say_damage();
  uint64_t invented_session();
  void write(PacketField field, std::string_view body);
  void write_rows();
  void write_steps();
  void write_all();

  const TraceTables& tables_;
  const PhaseMap& phases_;
  const Revisions& revisions_;
  DamageLog& damage_;
  TotalsPass pass_;
  uint32_t file_ = 0;  // of the segment at hand
  // Of launches.
  SegmentTimes busy_;
  std::map<uint32_t, TimeLine> time_lines_;  // TraceTables::devices
  std::vector<uint32_t> row_numbers_;        // in rows_, by row of the pass
  std::vector<ShortestLongest> of_rows_;     // by row of the pass: what kernels_ leaves out
  std::vector<Row> rows_;
  KernelDurations kernels_;
  PatternCalls patterns_;
  SingleSteps single_;
  StepKernels step_kernels_;
  bool any_batch_ = false;
  SequenceGroups sequences_;
  std::vector<trace::SequenceGroups> groups_;
  // Of other packets.
  trace::Header header_;
  bool has_header_ = false;
  trace::Summary summary_;
  std::vector<std::pair<PacketField, std::string>> definitions_;
  StepTable steps_;
  StepSums step_sums_;  // of them, with their kernels
  std::string single_steps_;
  std::map<uint32_t, trace::DeviceTimes> times_;  // by the device's id
  std::map<uint32_t, trace::AtOnce> at_once_;     // likewise
  std::vector<trace::KernelDurations> durations_;
  CoverageGrowth growth_;
  EnergyReadings energy_;
  std::vector<std::string> ledgers_;         // in which coverage grew
  std::map<PacketField, std::string> last_;  // messages of which the last one counts
  // Written.
  std::string bytes_;
  uint32_t sequence_ = 0;
};

}  // namespace flopinj::reduce
