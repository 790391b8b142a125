// In which group --help, the manual and completion have an option.
#pragma once
#include "manual/command_line.h"

namespace flopinj::reduce {

// Of the command and those below it, after all options were added. A command with few options has
// them in one list.
void put_options_in_groups(manual::CommandLine& line);

}  // namespace flopinj::reduce
