// What commands that read traces do around their own work.
#pragma once
#include <optional>

#include "commands/arguments/arguments.h"
#include "report/report.h"

namespace flopinj::reduce {

// The report of the traces, and the exit code that their state asks for; no report where none could
// be used. What is wrong with them was said on standard error.
struct Reduced {
  std::optional<Report> report;
  int exit_code = 0;
};
Reduced reduce_traces(InputArguments& input);
}  // namespace flopinj::reduce
