// Launches of kernels whose parameters never repeat.
//
// The recorder keeps the first fingerprints of a kernel apart and puts the rest into one class, which is
// sampled as varying. Of the first ones many were launched a single time, which is too rarely to be
// measured. They are the same kind of launch as the rest: those that have no complete counts of their
// own count with their kernel's merged class, as part of its estimate.
#pragma once
#include "model/model.h"
#include "model/totals.h"

namespace flopinj::reduce {

// Gives rows of such signatures to the merged class of the same function and shape on the same kind of
// device, where there is one with complete counts. The model must be joined; rows stay in order.
void fold_into_merged_classes(const Model& model, Totals& totals);

}  // namespace flopinj::reduce
