// What became of every launch, by device and in all.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "flop_trace.pb.h"
#include "report/figure.h"
#include "support/members.h"

namespace flopinj::reduce {

struct Reason {
  std::string reason;
  uint64_t launches = 0;
};

// Reasons of unmeasured launches that nothing has gone wrong for.
inline constexpr const char* kGraphOnly = "graph_only";
inline constexpr const char* kGreenContext = "green_context";
inline constexpr const char* kNeverMeasured = "never_measured";
// Of such a reason, "no_counters": the cause as the end of a sentence.
std::string reason_words(const std::string& reason);

struct LedgerLine {
  uint64_t launches = 0, measured = 0, extrapolated = 0, unmeasured = 0, dropped = 0;

  template <typename Self>
  static auto sums(Self& of) {
    auto& [launches, measured, extrapolated, unmeasured, dropped] = of;
    return std::tie(launches, measured, extrapolated, unmeasured, dropped);
  }
  void add(const LedgerLine& o) { add_each(sums(*this), sums(o)); }
  bool operator==(const LedgerLine&) const = default;
};

struct DeviceReport {
  uint32_t trace = 0;
  trace::Device facts;
  LedgerLine ledger;
  Figure energy_j;         // between the two readings that are farthest apart
  uint64_t energy_ns = 0;  // between them
};

struct LedgerReport {
  LedgerLine total;
  uint64_t duplicates_removed = 0;
  std::vector<Reason> unmeasured, dropped, duplicates;
  uint64_t extrapolated_in_graphs = 0;  // of total.extrapolated: kernels of graph launches
  uint64_t measured_in_graphs = 0;      // of total.measured, likewise
  // Of total.measured and total.extrapolated: launches whose counts come only from graph launches.
  uint64_t counted_by_graphs = 0;
  std::vector<Reason> unseen;  // launches beside which work may have run that is in no count
  std::vector<std::string> disagreements;  // empty when it balances
};

}  // namespace flopinj::reduce
