// What commands that read traces do around their own work.
#pragma once
#include <optional>
#include <set>

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
// Writes the summary of the inputs (passes/summary/condense.h), or of these sessions in them. The
// exit code.
int write_summary(InputArguments& input, const OutputArguments& output,
                  std::optional<std::set<uint64_t>> only = std::nullopt);

}  // namespace flopinj::reduce
