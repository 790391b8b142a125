// FLOP and GPU time of every row, from the samples and times of its signature.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "report/report.h"
#include "tables/estimate.h"
#include "tables/formulas.h"
#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// What is known about one signature on one kind of device, over all rows.
struct SignatureResult {
  SignatureFlop flop;
  Counts counts;              // sum of its rows
  uint64_t windows = 0;       // that its FLOP rest on, of the group with fewest
  bool every_launch = false;  // was sampled: nothing is extrapolated
  uint64_t elsewhere = 0;     // where it varies: launches on devices that were not sampled,
                              // and in graphs where none was
  std::optional<EstimateError> error;  // where it varies; nothing for too few samples, and where
                                       // launches ran elsewhere
  uint32_t error_class = 0;
  std::optional<double> spread;  // where it varies: standard deviation of one launch's FLOP

  bool estimated() const { return flop.varying || flop.inexact; }
  // The sum of all its launches is known, whatever each of them did.
  bool sum_exact() const { return every_launch && !flop.inexact; }
};

class WorkTable {
 public:
  WorkTable(const TraceTables& tables, const Totals& totals, Formulas& formulas);

  struct RowWork {
    Work work;
    Flop flop;
  };
  // Work of a row. Call once for each row, of the totals or of another way to cut the same launches
  // up, always in the same order: shares of a signature are handed out launch by launch, so that
  // rows add up to their signature exactly.
  RowWork next(const Row& row);
  void start_over() { handed_out_.clear(); }  // with another way to cut them up
  // The same row's work in a sum that holds all rows of its signature: which launches the row got
  // does not matter there.
  Work in_whole(const Row& row, const Work& work) const;
  const SignatureResult& result(uint32_t signature, uint32_t chip) const;

 private:
  static uint64_t key(uint32_t signature, uint32_t chip) {
    return static_cast<uint64_t>(signature) << 32 | chip;
  }
  void classify();

  std::unordered_map<uint64_t, SignatureResult> results_;
  std::unordered_map<uint64_t, uint64_t> handed_out_;
};

// Launches without a usable time count with the mean of the signature's launches outside windows;
// if there are none, with times taken inside windows; else they are unknown.
GpuTime time_of(const Counts& counts, const Counts& signature, bool& overflow);

}  // namespace flopinj::reduce
