// The forms in which a report can be written: `--format`.
#pragma once
#include <string>
#include <vector>

#include "commands/arguments/arguments.h"
#include "report/report.h"

namespace flopinj::reduce {

class Launches;

std::vector<std::string> kernel_orders();   // words of --sort
std::vector<manual::Entry> report_forms();  // name and purpose of each

// True for a form that has a table of what single processes did (ReduceOptions::facts).
bool shows_facts(const OutputArguments& output);
// True for a form that says how long single launches of a kernel took
// (ReduceOptions::launch_times).
bool shows_launch_times(const OutputArguments& output);
// True for a form that shows every launch. It is written by write_launches() while traces are read
// (ReduceOptions::launches), and write_report() is not called.
bool shows_launches(const OutputArguments& output);
struct WrittenLaunches {
  int exit_code = 0;  // errors were said on standard error
  uint64_t count = 0;
};
WrittenLaunches write_launches(Launches& launches, const OutputArguments& output, int fma);

// Fails where the output arguments are wrong, before any trace is read.
void check_report_form(const OutputArguments& output);
// Writes the report where `output` says. The exit code; errors were said on standard error.
int write_report(const Report& report, const OutputArguments& output);

}  // namespace flopinj::reduce
