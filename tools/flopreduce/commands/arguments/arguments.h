// The commands of flopreduce, `flopreduce COMMAND ...`, and what they have in common on their
// command lines. Without one, `report` is meant.
#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "gates/gate.h"
#include "manual/command_line.h"
#include "passes/reducer.h"
#include "reducer_commands.h"
#include "report/report.h"
#include "sections/parts/table.h"
#include "writers/writers.h"

namespace flopinj::reduce {

// What a form of output says that it was made by.
inline constexpr const char* kProgram = "flopinj " FLOPINJ_VERSION;

// Exit codes, where they mean something the same in every tool of the project.
inline constexpr int kExitFine = 0;
inline constexpr int kExitGate = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitPartial = 3;
inline constexpr int kExitPermission = 4;
inline constexpr int kExitNothing = 5;
struct ExitCode {
  int code;
  const char* meaning;
};
// What help, manual pages and docs/formats.md say of them.
inline constexpr ExitCode kExitCodes[] = {
    {kExitFine, "fine"},
    {kExitGate, "a gate (--fail-if) failed, even where the report is partial"},
    {kExitUsage, "the command line is wrong, or the output cannot be written"},
    {kExitPartial, "a trace is damaged or cannot be read; the rest is reported"},
    {kExitPermission, "no permission to read a trace; the rest is reported"},
    {kExitNothing, "no trace can be used: nothing is reported"}};

// What ends a command before it has a result. main() says it on standard error.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& what, int code = kExitUsage)
      : std::runtime_error(what), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// Adds a command to the command line: its options, and what its help says. What comes back runs
// after parsing, and gives the exit code; it owns what the options write to. Errors are thrown as
// Failure, or were said. Any other exception ends the program with kExitNothing and one line.
using Action = std::function<int()>;
struct Command : ReducerCommand {
  const char* text;  // what its help begins with
  Action (*define)(manual::CommandLine&);
  std::span<const Command* const> words = {};  // commands below it; then `define` is null
};
// One of the program's own. main() finds them by their names, which common/reducer_commands.h
// lists: a command takes a file of commands/ and a line there. Made before main(), on one thread.
struct ProgramCommand : Command {
  explicit ProgramCommand(const Command& command) : Command(command) { all().push_back(this); }
  ProgramCommand(const ProgramCommand&) = delete;
  ProgramCommand& operator=(const ProgramCommand&) = delete;
  static std::vector<const Command*>& all() {
    static std::vector<const Command*> commands;
    return commands;
  }
};
// One line on standard error, with the program's name in front.
void complain(const std::string& text);

// The lines of a file that a user names, without empty ones; "-": of standard input. Throws
// Failure.
std::vector<std::string> lines_of(const std::string& list, const char* option);

// An option that may be given several times, and takes one value each time.
CLI::Option& several(CLI::Option* option, const char* type);
// How a number of the command line is written.
enum class Written : uint8_t {
  kCount,        // with an SI prefix, above 0: 1.2M
  kCountOrZero,  // the same, or 0
  kShare,        // 0.4, or 40%
};
// An option whose value is a number.
void add_number(manual::CommandLine& app, const char* name, std::optional<double>& value,
                const char* help, Written written = Written::kCount);

// Rules for phases: --phase and --rules.
struct RuleArguments {
  std::vector<std::string> files;

  void add_to(manual::CommandLine& app, PhaseRules& rules);
};

// Traces, and how they are to be read.
struct InputArguments {
  std::vector<std::string> traces;
  std::vector<std::string> lists;  // files with names of more traces
  bool asks_for_traces = false;    // there must be one
  RuleArguments rules;
  std::vector<std::string> names;     // files with names of scopes
  std::vector<std::string> formulas;  // files with formulas
  bool quiet = false;
  ReduceOptions reduce;

  void add_traces_to(manual::CommandLine& app);  // `TRACE...` and --files-from
  // Both are left out where the command names its traces otherwise.
  void add_to(manual::CommandLine& app, bool positional = true);
  void add_peaks_to(manual::CommandLine& app);        // --peak
  void add_utilization_to(manual::CommandLine& app);  // --peak, and formulas' FLOP
  void add_skip_steps_to(manual::CommandLine& app);
  void finish();                           // after parsing: a folder's traces take its place
  std::vector<std::string> files() const;  // traces and rule files

 private:
  void take_newest_run();  // those of the current folder, which a line on standard error names
};

// Of these files, those with recordings of the run that began last (report/runs.h). Files that
// begin with no recording's header are left out.
std::vector<std::string> newest_run(const std::vector<std::string>& traces);

// The report of the traces, and the exit code that their state asks for; no report where none could
// be used. What is wrong with them was said on standard error.
struct Reduced {
  std::optional<Report> report;
  int exit_code = 0;
};
Reduced reduce_traces(InputArguments& input);
std::string device_names(const Report& report);  // kinds of devices, for people

// --time-range A..B, in nanoseconds since the first recording began.
struct TimeRange {
  std::string text;  // as given
  uint64_t begin_ns = 0, end_ns = UINT64_MAX;

  void parse();  // throws Failure
};

// Where a command's result goes, and in which form. There may be several outputs of one reading;
// any other option applies to every output whose form takes it.
struct OutputArguments {
  // Of the first output. An empty file: standard output; `-o -` says so too.
  std::string file, format = "text";
  bool force = false;                 // overwrite files that exist
  bool makes_traces = false;          // or summaries, and no report
  std::vector<std::string> tables;    // for CSV and JSON: keys of the tables to print
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
  // After parsing: what is read. Fails where an output is among it, or exists; where it would go
  // to a terminal and is not for one; and where outputs do not go together.
  void finish(std::vector<std::string> read);
  // Fails where `what` ("a page") would go to a terminal.
  void refuse_terminal(const char* what) const;
  // Each output by itself, in their order.
  std::vector<OutputArguments> each() const;
  // Lines fit the terminal, or $COLUMNS; where there is neither, tables have all their columns.
  TextOptions text_options() const;

 private:
  struct Output {
    std::optional<std::string> format, file;
  };
  void pair_outputs();
  // The form that the ending of a file's name says, where the command has it.
  std::optional<std::string> form_of(const std::string& name) const;

  std::vector<std::string> forms_;
  std::vector<Output> outputs_;  // as they are given: an -o belongs to the --format before it
};

// Calls write() with the output that the arguments name. The exit code; errors were said.
//
// A regular file is written beside its place under another name and moved there when it is whole,
// so that a failure leaves what was there before. Pipes, devices and standard output are written
// directly, as is a file whose folder takes no new file. A name that ends in .gz: compressed.
int write_output(const OutputArguments& output, const std::function<void(std::ostream&)>& write);

// Fails where the ending of the file's name is of a form that is not written into it.
void refuse_other_forms(const OutputArguments& output);
// Fails where the output is one of the inputs, by whatever name, since to write it would destroy
// what is read; or a file that exists, without --force.
void refuse_to_overwrite(const OutputArguments& output);

// Gates on a command's tables: --fail-if CONDITION. The grammar is in gates/gate.h.
class GateArguments {
 public:
  void add_to(manual::CommandLine& app, const char* example = "ratio > 2.1 or total.flop > 1.5T");
  bool any() const { return list_ || !gates_.empty(); }
  // The names of figures are what is asked for, and not the report.
  bool lists() const { return list_; }
  // Whether a condition may be on a figure with this part in its name, or names are listed.
  bool may_name(const std::string& part) const;
  // Prints the names of figures, where they are asked for, and what each gate comes to.
  std::vector<GateResult> results(std::span<const Table> tables) const;
  // Says on standard error which gates failed. kExitGate for a failed gate, and for one that is
  // decided by a figure that is not known; kExitUsage for a name that the result does not have.
  static int check(const std::vector<GateResult>& results);
  // Fails where a condition names a figure that no result has; rows of the tables may be missing.
  void check_names(std::span<const Table> tables) const;

 private:
  std::vector<std::string> texts_;
  std::vector<Gate> gates_;
  bool list_ = false;
};

}  // namespace flopinj::reduce
