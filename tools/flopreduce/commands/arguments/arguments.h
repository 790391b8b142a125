// What commands have in common on their command lines.
#pragma once
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "manual/command_line.h"
#include "passes/reducer.h"
#include "writers/writers.h"

namespace flopinj::reduce {

// One line on standard error, "flopreduce: " in front.
void complain(const std::string& text);

// The lines of a file that a user names, without empty ones; "-": of standard input. Throws
// Failure.
std::vector<std::string> lines_of(const std::string& list, const char* option);

// An option that may be given several times, and takes one value each time.
CLI::Option& several(CLI::Option* option, const char* type);
// An option whose value is a number with an SI prefix, above 0 or 0: --examples 1.2M.
void add_number(manual::CommandLine& app, const char* name, std::optional<double>& value,
                const char* help, bool may_be_zero = false);

// Rules for phases: --phase and --rules.
struct RuleArguments {
  std::vector<std::string> phases;
  std::vector<std::string> files;

  void add_to(manual::CommandLine& app);
  void finish(PhaseRules& rules);  // after parsing
};

// Traces, and how they are to be read.
struct InputArguments {
  std::vector<std::string> traces;
  std::vector<std::string> lists;  // files with names of more traces
  bool asks_for_traces = false;    // there must be one
  RuleArguments rules;
  std::vector<std::string> names;  // files with names of scopes
  bool quiet = false;
  ReduceOptions reduce;

  void add_traces_to(manual::CommandLine& app);  // `TRACE...` and --files-from
  // Both are left out where the command names its traces otherwise.
  void add_to(manual::CommandLine& app, bool positional = true);
  void add_peaks_to(manual::CommandLine& app);        // --peak
  void add_utilization_to(manual::CommandLine& app);  // --peak, and formulas' FLOP
  void finish();                           // after parsing: a folder's traces take its place
  std::vector<std::string> files() const;  // traces and rule files
};

// --time-range A..B, in nanoseconds since the first recording began.
struct TimeRange {
  std::string text;  // as given
  uint64_t begin_ns = 0, end_ns = UINT64_MAX;

  void parse();  // throws Failure
};

// Where a command's result goes, and in which form.
struct OutputArguments {
  std::string file;    // empty: standard output; `-o -` says so too
  bool force = false;  // overwrite files that exist
  std::string format = "text";
  std::string table;                  // for CSV: the key of the one table that is wanted
  TimeRange time_range;               // for launches on a time line
  std::string weight;                 // for folded stacks: "flop", "time" or "launches"
  std::string color = "auto";         // or "always" or "never"
  size_t top = 10;                    // lines of long tables
  std::optional<size_t> given_top;    // where it was given
  std::vector<std::string> sections;  // for people: keys of those that are wanted
  bool all = false;                   // for people: all sections
  std::string sort;                   // of kernels on the first screen

  std::vector<std::string> inputs;  // files that are read, and therefore never written

  void add_to(manual::CommandLine& app, std::vector<std::string> formats);
  void add_file_to(manual::CommandLine& app);  // -o and --force
  // After parsing: what is read. Fails where the output is among it, or exists.
  void finish(std::vector<std::string> read);
  // Lines fit the terminal, or $COLUMNS; where there is neither, tables have all their columns.
  TextOptions text_options() const;
};

// Calls write() with the output that the arguments name. The exit code; errors were said.
//
// A regular file is written beside its place under another name and moved there when it is whole,
// so that a failure leaves what was there before. Pipes, devices and standard output are written
// directly, as is a file whose folder takes no new file. A name that ends in .gz: compressed.
int write_output(const OutputArguments& output, const std::function<void(std::ostream&)>& write);

// Fails where the output is one of the inputs, by whatever name, since to write it would destroy
// what is read; or a file that exists, without --force.
void refuse_to_overwrite(const OutputArguments& output);

}  // namespace flopinj::reduce
