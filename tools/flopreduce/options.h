// The command line of flopreduce.
#pragma once
#include <string>
#include <vector>

#include "passes/reducer.h"

namespace flopinj::reduce {

enum class Color { kAuto, kAlways, kNever };

struct CommandLine {
  std::vector<std::string> traces;
  std::string output;  // empty: standard output
  bool json = false;
  size_t top = 10;
  Color color = Color::kAuto;
  ReduceOptions reduce;
};

// Exit codes, the same in every tool of the project.
inline constexpr int kExitFine = 0;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitPartial =
    3;  // unreadable or partial input; what is readable was reported
inline constexpr int kExitPermission = 4;

// Fills `line`; -1 to go on, or the exit code after help, version or an error (said on standard
// error).
int parse_command_line(int argc, char** argv, CommandLine& line);

}  // namespace flopinj::reduce
