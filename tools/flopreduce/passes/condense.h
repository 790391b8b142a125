// Summaries: what a report needs of traces, in the form of traces themselves (proto/FORMAT.md). The
// launches of each recorded process are added up; all else stays as it is.
//
// A summary of a summary is the same summary, to the byte, and recordings do not depend on each
// other. So joining summaries is summarizing them together: in any order, in any grouping, and with
// inputs given twice.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "reader/input.h"

namespace flopinj::reduce {

struct Condensed {
  std::string bytes;        // of the summary
  uint64_t recordings = 0;  // processes in it
};

// Parts of one trace must come in the order in which they were written.
Condensed condense(std::span<Input* const> inputs);

}  // namespace flopinj::reduce
