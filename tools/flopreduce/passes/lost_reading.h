// Where the time went, of launches that are read once, with the totals: they are kept as sums and
// logs in little memory, and valued when the totals say what a launch is worth. Traces that need
// more memory, or whose launches turn out otherwise than was taken for granted, are left for a
// reading after the totals.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "passes/launch_worths.h"
#include "passes/lost_ledger.h"
#include "passes/lost_pass.h"
#include "passes/second_pass.h"

namespace flopinj::reduce {

class LostReading {
 public:
  static constexpr size_t kRoomBytes = 16U << 20;

  // All must outlive this. Traces in `revised` are left.
  LostReading(const TraceTables& tables, const PhaseRules& rules, const PhaseMap& phases,
              const std::vector<Segment>& segments, const std::set<uint32_t>& revised);
  // For all logs of the reading.
  LogRoom& room() { return room_; }
  // A consumer, one for each thread. Those before `first` are forgotten.
  LostPass& consumer(bool first);
  // After the launches. Gives the ledger what is valued, and says which traces are left.
  std::vector<bool> value(LaunchWorths& worths, const Totals& totals, LostLedger& ledger);
  Collectives& collectives() { return in_first<LostPass>(passes_).collectives(); }

 private:
  void keep(uint32_t trace, LostPass::Devices devices);

  const TraceTables& tables_;
  const LaunchGuesses guesses_;
  const std::vector<Segment>& segments_;
  std::vector<bool> in_parts_;
  LogRoom room_{kRoomBytes};
  std::mutex lock_;
  std::map<uint32_t, LostPass::Devices> kept_;  // by trace
  std::unique_ptr<LostParts> parts_;
  std::vector<std::unique_ptr<LostPass>> passes_;
};

}  // namespace flopinj::reduce
