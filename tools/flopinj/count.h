// `flopinj doctor --count`: kernels whose counts are known, run under the profiler as flopinj run
// runs a program, and what is counted against theory.
#pragma once

namespace flopinj {

// Prints a table, writes the findings and says where. An exit code: kExitCheckFailed where a count
// differs or lacks.
int count_known_kernels();

}  // namespace flopinj
