// Loading libflopinj.so into a process that was started without it, with gdb.
//
// gdb stops the process, lets it run until one of its threads begins a call that no thread makes
// with a lock of the C library's allocator or loader held (a launch, a sleep, a wait), and calls
// dlopen() there. The library then listens (flopinj_listen); all else is asked for by its socket.
// While gdb reads the symbols of a few libraries the process is stopped, for a second or so.
#pragma once
#include <sys/types.h>

#include "install_tree.h"

namespace flopinj {

// Throws std::runtime_error, with one line that says what to do, where it cannot be: no CUDA in the
// process, a static program, another architecture, the library not to be seen from it (another
// mount namespace), ptrace forbidden (Yama, no capability), no gdb, no safe moment within 20 s.
// Then the process is as it was.
void enter_process(pid_t, const InstallTree&);

}  // namespace flopinj
