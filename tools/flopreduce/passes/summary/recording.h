// One recorded process, as a summary has it (proto/FORMAT.md).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flop_trace.pb.h"
#include "flop_trace_fields.h"
#include "passes/packets/trace_order.h"
#include "passes/rows/kernel_durations.h"
#include "passes/rows/single_steps.h"
#include "passes/sequence/sequence_groups.h"
#include "passes/totals_pass.h"
#include "phases/phases.h"
#include "reader/damage.h"
#include "reader/packet_reader.h"
#include "support/shortest_longest.h"
#include "tables/coverage_growth.h"
#include "tables/steps.h"

namespace flopinj::reduce {

// What its launches come to: trace 0 of the tables.
class RecordedLaunches final : public LaunchConsumer {
 public:
  static constexpr size_t kMostSingleSteps = 1024;
  struct Row {
    LaunchLane lane;
    uint32_t path = 0, signature = 0;  // ids of the trace
    uint64_t launches = 0, timed = 0, time_ns = 0, graph = 0;
    ShortestLongest times;
  };

  // All must outlive this.
  RecordedLaunches(SharedTables& shared, const PhaseMap& phases);
  // A batch of launches or a tally. `segment`: the number of that which the packet is in.
  void batch(const Packet& packet, size_t segment, DamageLog& damage);
  bool groups(const trace::SequenceGroups& message) { return groups_.add(message, damage_); }

  // After the last batch, each once.
  std::vector<Row> rows(DamageLog& damage);
  std::map<uint32_t, trace::DeviceTimes> device_times();  // by the device's id
  std::vector<trace::KernelDurations> kernel_durations() {
    return durations_.messages(pass_.rows());
  }
  std::vector<trace::SequenceGroups> sequence_groups(DamageLog& damage);
  std::optional<trace::SingleSteps> single_steps();

  void launches(const RowTable& rows, const LaunchPiece& piece) override;
  void batch(uint32_t trace, const LaunchBatchReader& batch) override;
  void tally(const RowTable& rows, uint32_t row, const TallyRow& tally) override;

 private:
  const TraceTables& tables_;
  const PhaseMap& phases_;
  TotalsPass pass_;
  SegmentTimes times_, segment_times_;
  size_t segment_ = 0;
  std::vector<ShortestLongest> of_rows_;  // by row
  KernelDurations durations_;
  SingleSteps steps_;
  SequenceGroups groups_;
  DamageLog damage_;  // of groups
  bool any_batch_ = false;
};

// One recorded process.
class Recording {
 public:
  using PacketField = trace_fields::TracePacketField;
  // All but launches and tallies, which are the launches'.
  void packet(const Packet& packet, RecordedLaunches& launches, DamageLog& damage);
  // After the last packet. `damage`: all that was found in the recording.
  void finish(RecordedLaunches& launches, DamageLog& damage);
  std::string bytes();                                       // once it is finished
  uint64_t session() const { return header_.session_id(); }  // the same
  // As the reducer orders its inputs; those without a header by what is in them.
  TraceOrder order() const;
  bool ended() const { return last_.contains(PacketField::end); }
  uint64_t launches() const;
  uint64_t damage() const;  // places that were found damaged

 private:
  void define(const Packet& packet);
  void ledger(const Packet& packet, DamageLog& damage);
  void write(PacketField field, std::string_view body);
  void add_damage(const DamageLog& damage);
  void write_rows();
  void write_steps();
  void invent_session();

  trace::Header header_;
  std::string header_body_;
  trace::Summary summary_;
  std::vector<std::pair<PacketField, std::string>> definitions_;
  std::vector<RecordedLaunches::Row> rows_;
  StepTable steps_;
  std::vector<trace::SequenceGroups> groups_;
  std::map<uint32_t, trace::DeviceTimes> times_;
  std::vector<trace::KernelDurations> durations_;
  std::string single_steps_;
  CoverageGrowth growth_;
  std::vector<std::string> ledgers_;         // in which coverage grew
  std::map<PacketField, std::string> last_;  // messages of which the last one counts
  std::string bytes_, packet_;
  uint32_t sequence_ = 0;
};

}  // namespace flopinj::reduce
