#include "commands/run.h"

#include "commands/arguments/command.h"
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

// Fails where a --peak is of no device in the report.
void check_peaks(const Report& report) {
  const auto& unused = report.utilization.unused_overrides;
  if (unused.empty()) return;
  std::string names;
  for (const auto& device : report.utilization.devices)
    names += (names.empty() ? "" : ", ") + printable(cut(device.name, 100));
  throw Failure("--peak '" + printable(cut(unused[0], 100)) +
                ":...': no device in these traces is named so; they have " +
                (names.empty() ? "none" : names));
}

}  // namespace

Reduced reduce_traces(InputArguments& input) {
  input.reduce.choose_copies = most_complete;
  Reducer reducer(std::move(input.reduce));
  const int trouble = open_traces(reducer, input);
  if (!reducer.any_input()) return {std::nullopt, kExitNothing};
  size_t said = reducer.errors().size();
  Reduced result{reducer.run(), kExitFine};
  for (; said < reducer.errors().size(); ++said) complain(reducer.errors()[said].message);
  if (const uint64_t missing = result.report->fact_launches_left_out; missing > 0)
    complain(to_grouped(missing) + " launches are in no row of table rows, which is full");
  if (const std::string runs = runs_notice(*result.report); !runs.empty())
    complain(printable(runs));
  if (result.report->given_names_unused)
    complain("--names: no launch has one of the names: are they of this program?");
  if (!result.report->errors.empty()) {
    result.exit_code = trouble;
  } else if (result.report->partial) {
    complain("the report is partial: " + printable(damage_words(*result.report, 4)));
    result.exit_code = kExitPartial;
  }
  check_peaks(*result.report);
  return result;
}

}  // namespace flopinj::reduce
