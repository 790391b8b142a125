#include "commands/run.h"

#include <unistd.h>

#include <ostream>

#include "commands/arguments/command.h"
#include "commands/arguments/output_file.h"
#include "passes/router.h"
#include "sections/notices.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// The exit code for the case that one could not be used, which was said.
int open_traces(Reducer& reducer, const InputArguments& input) {
  for (const auto& path : input.traces) reducer.add(path);
  bool permission = false;
  for (const auto& error : reducer.errors()) {
    complain(error.message);
    permission = permission || error.permission;
  }
  return permission ? kExitPermission : kExitPartial;
}

}  // namespace

Reduced reduce_traces(InputArguments& input) {
  Reducer reducer(std::move(input.reduce));
  const int trouble = open_traces(reducer, input);
  if (!reducer.any_input()) return {std::nullopt, trouble};
  Reduced result{reducer.run(), kExitFine};
  if (!result.report->errors.empty()) {
    result.exit_code = trouble;
  } else if (result.report->partial) {
    complain("the report is partial: " + printable(damage_words(*result.report, 4)));
    result.exit_code = kExitPartial;
  }
  return result;
}

int write_summary(InputArguments& input, const OutputArguments& output) {
  if (output.file.empty() && ::isatty(STDOUT_FILENO) != 0) {
    complain("a summary is not for a terminal: name a file with -o");
    return kExitUsage;
  }
  Reducer reducer(std::move(input.reduce));
  const int trouble = open_traces(reducer, input);
  if (!reducer.any_input()) return trouble;
  const Condensed summary = reducer.summary();
  if (summary.recordings > kMostInSummary) {
    complain("a summary of " + std::to_string(summary.recordings) +
             " processes could not be read again, since at most " + std::to_string(kMostInSummary) +
             " are: merge fewer files at a time. Nothing was written");
    return kExitUsage;
  }
  const int code = write_output(output, [&](std::ostream& out) { out << summary.bytes; });
  return code == kExitFine && !reducer.errors().empty() ? trouble : code;
}

}  // namespace flopinj::reduce
