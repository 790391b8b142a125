// The commands of flopreduce: `flopreduce COMMAND ...`. Without one, `report` is meant.
#pragma once
#include <functional>
#include <span>
#include <stdexcept>
#include <string>

#include "manual/command_line.h"

namespace flopinj::reduce {

// What a form of output says that it was made by.
inline constexpr const char* kProgram = "flopreduce " FLOPINJ_VERSION;

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
struct Command {
  const char* name;
  const char* purpose;  // one line
  const char* text;     // what its help begins with
  Action (*define)(manual::CommandLine&);
  std::span<const Command* const> words = {};  // commands below it; then `define` is null
};
// One for each file of commands/; main.cpp has the list.
extern const Command kReport, kAnonymize, kCompare, kExplain, kMerge, kPeaks, kProject, kQuery,
    kRules, kSchema;

}  // namespace flopinj::reduce
