#include "commands/run.h"

#include <unistd.h>

#include <ostream>

#include "commands/command.h"
#include "commands/output_file.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// One line for everything that damage took from the report.
std::string what_is_missing(const Report& report) {
  constexpr size_t kMost = 4;
  std::string text;
  size_t kinds = 0;
  for (const auto& d : report.damage) {
    if (!damage_text(d.kind).partial || ++kinds > kMost) continue;
    text += (text.empty() ? "" : "; ") + printable(d.file) + ": " + std::to_string(d.count) + " " +
            damage_text(d.kind).meaning;
  }
  return kinds > kMost ? text + "; and more, see Damage in the report" : text;
}

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
    complain("the report is partial: " + what_is_missing(*result.report));
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
  const std::string summary = reducer.summary();
  const int code = write_output(output, [&](std::ostream& out) { out << summary; });
  return code == kExitFine && !reducer.errors().empty() ? trouble : code;
}

}  // namespace flopinj::reduce
