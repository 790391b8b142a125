// `flopinj run` as the parent of the program, where something is to be made when it has ended.
#pragma once
#include <sys/types.h>

#include <functional>

#include "watch.h"

namespace flopinj {

// Signals that come to this process are handed on from here on. The program is started with the
// signals as we were. Negative, with errno: it cannot be started.
pid_t start_program(const std::function<int()>& become_program);

// Until it has ended, and its processes have said what they recorded. How it ended, as waitpid()
// has it.
int wait_and_listen(pid_t program, RunSocket& socket, RunRecord& record);

// As the program ended: by its signal, or its exit code is returned.
int end_as(int status);

}  // namespace flopinj
