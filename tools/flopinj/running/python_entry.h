// The way into a process that CPython has since version 3.14 (PEP 768): sys.remote_exec asks the
// process's interpreter to run a script where it next may, between two instructions of Python. No
// thread is held. Only an interpreter of the same version knows how, so that the process's own
// program is run for it, as the process's user.
#pragma once
#include <sys/types.h>

#include <string>

#include "running/held_thread.h"

namespace flopinj {

// Has the process's interpreter load the library and call its flopinj_listen(). False where it has
// not done so by `until`: it is no CPython, is older, does not take requests
// (PYTHON_DISABLE_REMOTE_DEBUG), is in a mount namespace of its own, or its first thread has run no
// Python since. In that last case it does both when it does, which is not too late: to load the
// library twice changes nothing.
bool enter_by_interpreter(pid_t, const std::string& library, Moment until);

}  // namespace flopinj
