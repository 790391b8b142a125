// Loading libflopinj.so into a process that was started without it.
//
// The interpreter of Python 3.14 is asked to do so. Else one of its threads that waits calls
// dlopen() and then the library's flopinj_listen() (remote_call.h). All else is asked for by its
// socket. The other threads run on.
#pragma once
#include <sys/types.h>

#include <string>

namespace flopinj {

// Throws std::runtime_error, with one line that says what to do, where it cannot be: no CUDA in the
// process, a static program, another architecture, the library not to be seen from it (another
// mount namespace), a filter of system calls, a debugger in it, ptrace forbidden (Yama, no
// capability), a stopped process, no safe place within 20 s. Then the process is as it was.
// docs/safety.md has each of these with its test.
void enter_process(pid_t, const std::string& library);

}  // namespace flopinj
