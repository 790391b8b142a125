// What commands answer, and the forms in which they write it: `--format`.
#pragma once
#include <string>
#include <vector>

#include "commands/arguments/arguments.h"
#include "report/report.h"
#include "sections/parts/table.h"
#include "writers/writers.h"

namespace flopinj::reduce {

class Launches;

// An answer in the forms that sections and tables have: text, JSON, CSV, SQLite, Markdown, HTML.
struct Result {
  std::vector<Section> sections;   // for people
  std::vector<Table> tables = {};  // for programs; empty: those of the sections
  std::string title = "FLOP";      // of the HTML page
  bool rows_only = false;          // its JSON is the list of rows of its table
  // Of a comparison: what the HTML page has side by side. They must outlive it.
  std::vector<PageSide> sides = {};
};
std::vector<std::string> result_forms();
// Writes where `output` says. The exit code; errors were said on standard error.
int write_result(const Result& result, const OutputArguments& output);

// Of a report there are more forms.
std::vector<manual::Entry> report_forms();  // name and purpose of each
std::vector<std::string> kernel_orders();   // words of --sort
// Fails where the output arguments are wrong, before any trace is read.
void check_report_form(const OutputArguments& output);
// The same as of a result. Launches are not written.
int write_report(const Report& report, const OutputArguments& output);

// True for an output that has a table of what single processes did (ReduceOptions::facts).
bool shows_facts(const OutputArguments& output);
// True for an output that says how long single launches of a kernel took
// (ReduceOptions::launch_times).
bool shows_launch_times(const OutputArguments& output);
// True for an output that says when which phase did how many FLOP (ReduceOptions::flop_over_time).
bool shows_flop_over_time(const OutputArguments& output);
// True for an output that says where the time went (ReduceOptions::lost).
bool shows_lost(const OutputArguments& output);
// True for an output that shows every launch. It is written by write_launches() while traces are
// read (ReduceOptions::launches).
bool shows_launches(const OutputArguments& output);
struct WrittenLaunches {
  int exit_code = 0;  // errors were said on standard error
  WrittenEvents events;
};
WrittenLaunches write_launches(Launches& launches, const OutputArguments& output, int fma);

}  // namespace flopinj::reduce
