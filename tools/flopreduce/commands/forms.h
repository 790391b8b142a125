// The forms in which a report can be written: `--format`.
#pragma once
#include <string>
#include <vector>

#include "commands/arguments.h"
#include "report/report.h"

namespace flopinj::reduce {

std::vector<std::string> report_forms();
// One line each, for --help.
std::string describe_report_forms();

// What can be said wrong about the output arguments before any trace is read: -1, or the exit code.
int check_report_form(const OutputArguments& output);
// Writes the report where `output` says. The exit code; errors were said on standard error.
int write_report(const Report& report, const OutputArguments& output);

}  // namespace flopinj::reduce
