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
#include "passes/rows/launch_key.h"
#include "passes/rows/number_split.h"
#include "passes/rows/repeating_table.h"
#include "passes/rows/single_steps.h"
#include "passes/sequence/sequence_groups.h"
#include "passes/summary/kernel_times.h"
#include "phases/phases.h"
#include "reader/damage.h"
#include "reader/packet_reader.h"
#include "support/shortest_longest.h"
#include "tables/coverage_growth.h"
#include "tables/steps.h"

namespace flopinj::reduce {

// One recorded process.
class Recording {
 public:
  static constexpr size_t kMostSingleSteps = 1024;

  using PacketField = trace_fields::TracePacketField;
  // `trace`: its index in the tables of the numbers. `segment`: the number of that which the packet
  // is in.
  void packet(const Packet& packet, uint32_t trace, size_t segment, const NumberSource& numbers,
              const PhaseMap& phases, DamageLog& damage);
  // After the last packet. `damage`: all that was found in the recording.
  void finish(DamageLog& damage);
  std::string bytes();                                       // once it is finished
  uint64_t session() const { return header_.session_id(); }  // the same
  // As the reducer orders its inputs; those without a header by what is in them.
  TraceOrder order() const;
  bool ended() const { return last_.contains(PacketField::end); }
  uint64_t launches() const;
  uint64_t damage() const;  // places that were found damaged

 private:
  struct Sums {
    uint64_t launches = 0, timed = 0, time_ns = 0, graph = 0;
    ShortestLongest times;
  };
  void launches(const Packet& packet, uint32_t trace, size_t segment, const NumberSource& numbers,
                const PhaseMap& phases, DamageLog& damage);
  void tally(const Packet& packet, DamageLog& damage);
  void define(const Packet& packet);
  void ledger(const Packet& packet, DamageLog& damage);
  static constexpr size_t kMostRows = 1U << 20;
  Sums* row(const LaunchKey& key, DamageLog& damage);
  void write(PacketField field, std::string_view body);
  std::vector<std::pair<LaunchKey, Sums>> rows_in_order() const;
  void add_damage(const DamageLog& damage);
  void write_rows();
  void write_steps();
  void invent_session();

  trace::Header header_;
  std::string header_body_;
  trace::Summary summary_;
  std::vector<std::pair<PacketField, std::string>> definitions_;
  LaunchList list_;
  RepeatingTable<LaunchKey, Sums, LaunchKey::Hash> rows_{kMostRows};
  SequenceGroups groups_;
  StepTable steps_;
  std::vector<trace::SequenceGroups> group_messages_;
  KernelTimes times_;
  std::optional<KernelDurations> durations_;
  std::vector<trace::KernelDurations> duration_messages_;
  std::optional<SingleSteps> single_steps_;  // of its launches
  std::string known_single_steps_;           // what a summary says of them
  std::string single_steps_message_;
  CoverageGrowth growth_;
  std::vector<std::string> ledgers_;         // in which coverage grew
  std::map<PacketField, std::string> last_;  // messages of which the last one counts
  std::string bytes_, packet_;
  uint32_t sequence_ = 0;
};

}  // namespace flopinj::reduce
