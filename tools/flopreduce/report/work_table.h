// FLOP and GPU time of every row, from the samples and times of its signature.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/estimate.h"
#include "model/formulas.h"
#include "model/model.h"
#include "model/totals.h"
#include "report/report.h"

namespace flopinj::reduce {

// What is known about one signature on one kind of device, over all rows.
struct SignatureResult {
  SignatureFlop flop;
  Counts counts;                       // sum of its rows
  uint64_t clusters = 0;               // windows that the extrapolation rests on, of the group with
                                       // fewest; 0 where the work is fixed
  std::optional<EstimateError> error;  // where it varies; nothing for too few samples
  uint32_t error_class = 0;
  std::optional<double> spread;  // standard deviation of one launch's FLOP, likewise

  bool estimated() const { return flop.varying || flop.inexact; }
};

class WorkTable {
 public:
  WorkTable(const Model& model, const Totals& totals, Formulas& formulas);

  struct RowWork {
    Work work;
    Flop flop;
  };
  // Work of totals.rows[i]. Call once for each i in order: shares of a signature are handed out
  // launch by launch, so that rows add up to their signature exactly.
  RowWork next(size_t i);
  const SignatureResult& result(uint32_t signature, uint32_t chip) const;

 private:
  static uint64_t key(uint32_t signature, uint32_t chip) {
    return static_cast<uint64_t>(signature) << 32 | chip;
  }
  void classify();

  const Totals& totals_;
  std::unordered_map<uint64_t, SignatureResult> results_;
  std::unordered_map<uint64_t, uint64_t> handed_out_;
};

// Launches without a usable time stand with the mean of the signature's launches outside windows;
// if there are none, with times taken inside windows; else they are unknown.
GpuTime time_of(const Counts& counts, const Counts& signature, bool& overflow);

}  // namespace flopinj::reduce
