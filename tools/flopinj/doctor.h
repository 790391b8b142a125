// `flopinj doctor`: says what a profiled program would find on this machine, and what to do about
// what is missing.
#pragma once
#include "install_tree.h"

namespace flopinj {

// Prints one line per check. Returns kExitOk, kExitCheckFailed or kExitPermission. Loads the driver
// library into this process and initialises it, without injection.
int doctor(const InstallTree& tree);

}  // namespace flopinj
