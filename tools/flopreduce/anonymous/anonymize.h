// A trace or summary written anew without what says whose it is: names as pseudonyms
// (anonymous/names.h); host, command line and files as well; identifiers of devices, sessions and
// code as keyed hashes; the texts of diagnostics left out. Numbers stay: every figure of its report
// is that of the original.
#pragma once
#include <string>

#include "anonymous/names.h"
#include "reader/damage.h"
#include "reader/input.h"

namespace flopinj::reduce {

struct AnonymizeOptions {
  bool keep_ranges = false;   // names of ranges, their domains and threads
  bool keep_kernels = false;  // names of kernels
};

// Packets that are damaged are left out and logged; the rest keep their numbers, so that a report
// says as before that some are lost.
std::string anonymize(Input& input, const AnonymousNames& names, const AnonymizeOptions& options,
                      DamageLog& damage);

}  // namespace flopinj::reduce
