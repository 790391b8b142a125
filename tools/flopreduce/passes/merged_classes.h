// Launches of kernels whose parameters never repeat.
//
// The recorder keeps the first fingerprints of a kernel apart and puts the rest into one class,
// which is sampled as varying. Of the first ones many were launched a single time, which is too
// rarely to be measured, or was without screening. They are the same kind of launch as the rest:
// those that have no complete counts of their own count with their kernel's merged class, as part
// of its estimate.
#pragma once
#include <cstdint>
#include <vector>

#include "tables/totals.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// The merged classes of joined tables.
class MergedClasses {
 public:
  explicit MergedClasses(const TraceTables& tables);
  bool any() const { return !class_of_.empty(); }
  // The signature that launches count with: their own, or the merged class of the same function and
  // shape, where that has complete counts on this kind of device and they have none.
  uint32_t home(uint32_t signature, uint32_t chip) const;

 private:
  const TraceTables& tables_;
  std::vector<uint32_t> class_of_;  // by signature; empty where there are no classes
};

// Gives rows of such signatures to the merged class of the same function and shape on the same kind
// of device, where there is one with complete counts. The tables must be joined; rows stay in
// order.
void fold_into_merged_classes(const TraceTables& tables, Totals& totals);

}  // namespace flopinj::reduce
