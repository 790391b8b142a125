// The commands of flopreduce: `flopreduce COMMAND ...`. Without one, `report` is meant.
#pragma once
#include <span>

namespace flopinj::reduce {

// Exit codes, the same in every tool of the project.
inline constexpr int kExitFine = 0;
inline constexpr int kExitGate = 1;  // a gate (--fail-if) failed
inline constexpr int kExitUsage = 2;
// Unreadable or partial input; what is readable was reported.
inline constexpr int kExitPartial = 3;
inline constexpr int kExitPermission = 4;

// `argv[0]` is the command's name. The result is the program's exit code; errors were said on
// standard error. May throw: the program then ends with kExitPartial and one line.
struct Command {
  const char* name;
  const char* purpose;  // one line
  int (*run)(int argc, char** argv);
  // The words that may follow its name and have options of their own.
  std::span<const char* const> words = {};
};
extern const Command kReport, kCompare, kExplain, kMerge, kPeaks, kProject, kRules;
std::span<const Command* const> commands();

}  // namespace flopinj::reduce
