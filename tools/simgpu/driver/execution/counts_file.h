// SIMGPU_COUNTS=FILE: what the first launches of each kernel counted, without a profiler. Each is a
// line of FILE; later launches do not run, so that a program comes to its end soon, with results
// that mean nothing. A process that a tool observes has none.
#pragma once
#include "simgpu/hooks.h"

namespace simgpu {

// Whether the launch is to run; each kernel's first two are.
bool launch_runs(const char* symbol);

// Appends "kernel;grid;block;count=number ..." with the counts that are not 0.
void write_counts(const KernelRun& run);

}  // namespace simgpu
