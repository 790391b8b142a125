// The manual page and the shell completions, from the command lines of all commands.
#pragma once
#include <string_view>
#include <vector>

#include "manual/manual.h"

namespace flopinj::reduce {

// While it is set, parse() adds what a command's line may hold to it, and reads nothing.
extern std::vector<manual::Command>* being_described;

// `flopreduce --generate man|bash|zsh|fish`, which the build calls. The exit code.
int generate(std::string_view form);

}  // namespace flopinj::reduce
