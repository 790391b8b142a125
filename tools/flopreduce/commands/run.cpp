#include "commands/run.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string_view>
#include <variant>
#include <vector>

#include "commands/arguments/command.h"
#include "passes/router.h"
#include "passes/summary/condense.h"
#include "sections/notices.h"
#include "support/text.h"
#include "support/wide.h"

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

// What was damaged, as far as a reader wants to know.
void say_some(const std::vector<std::string>& lines) {
  constexpr size_t kMost = 10;
  for (size_t i = 0; i < std::min(kMost, lines.size()); ++i) complain(lines[i]);
  if (lines.size() > kMost)
    complain("and " + to_grouped(lines.size() - kMost) +
             " more with damage: the report of the summary names them");
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

int write_summary(InputArguments& input, const OutputArguments& output,
                  std::optional<std::set<uint64_t>> only) {
  if (output.file.empty() && ::isatty(STDOUT_FILENO) != 0) {
    complain("a summary is not for a terminal: name a file with -o");
    return kExitUsage;
  }
  Merge merge;
  bool permission = false;
  size_t unopened = 0;
  for (const auto& path : input.traces) {
    auto opened = Input::open(path);
    if (auto* error = std::get_if<InputError>(&opened)) {
      complain(error->message);
      permission = permission || error->permission;
      ++unopened;
    } else {
      merge.add(std::move(std::get<std::unique_ptr<Input>>(opened)));
    }
  }
  const bool chosen = only.has_value();
  if (only) merge.use_only(std::move(*only));
  merge.choose();
  size_t said = 0;
  const auto say_errors = [&] {
    for (; said < merge.errors().size(); ++said) complain(merge.errors()[said]);
  };
  say_errors();
  const int trouble = permission ? kExitPermission : kExitPartial;
  if (merge.too_many() || merge.recordings() > kMostInSummary) {
    complain("a summary of more than " + to_grouped(kMostInSummary) +
             " processes could not be read again: merge fewer at a time. Nothing was written");
    return kExitUsage;
  }
  if (!merge.any()) {
    if (chosen) complain("no recording in the inputs has one of these sessions");
    return kExitNothing;
  }
  const int code = write_output(output, [&](std::ostream& out) {
    merge.write([&](std::string_view bytes) { out << bytes; });
  });
  say_errors();
  say_some(merge.damaged());
  return code == kExitFine && unopened + said > 0 ? trouble : code;
}

}  // namespace flopinj::reduce
