// What commands have in common on their command lines.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "passes/reducer.h"
#include "writers/text_writer.h"

namespace flopinj::reduce {

// Parses, or describes for describe_command(); -1 to go on, or the exit code after help or an error
// (said on standard error).
int parse(CLI::App& app, int argc, char** argv);
// One line on standard error, "flopreduce: " in front.
void complain(const std::string& text);

// Rules for phases: --phase and --rules.
struct RuleArguments {
  std::vector<std::string> phases;
  std::vector<std::string> files;

  void add_to(CLI::App& app);
  // After parsing; -1 to go on, or the exit code.
  int finish(PhaseRules& rules);
};

// Traces, and how they are to be read.
struct InputArguments {
  std::vector<std::string> traces;
  RuleArguments rules;
  bool quiet = false;
  ReduceOptions reduce;

  // `TRACE...` is left out where the command names its traces otherwise.
  void add_to(CLI::App& app, bool positional = true);
  // After parsing; -1 to go on, or the exit code.
  int finish();
  std::vector<std::string> files() const;  // traces and rule files
};

// Where a command's result goes, and in which form.
struct OutputArguments {
  enum class Color { kAuto, kAlways, kNever };
  std::string file;    // empty: standard output; `-o -` says so too
  bool force = false;  // overwrite files that exist
  std::string format = "text";
  std::string table;   // for CSV: the key of the one table that is wanted
  std::string weight;  // for folded stacks: "flop", "time" or "launches"
  Color color = Color::kAuto;
  size_t top = 10;
  std::vector<std::string> sections;  // for people: words of the titles that are wanted; empty: all

  std::vector<std::string> inputs;  // files that are read, and therefore never written

  void add_to(CLI::App& app, std::vector<std::string> formats);
  void add_file_to(CLI::App& app);  // -o and --force
  // After parsing: what is read. -1 to go on, or the exit code where the output is among it.
  int finish(std::vector<std::string> read);
  // Lines fit the terminal, or $COLUMNS; where there is neither, tables have all their columns.
  TextOptions text_options() const;
};

}  // namespace flopinj::reduce
