// What the probes share: sets of metrics, a kernel that is recognised by its count, and the probes by name.
#pragma once
#include "range_windows.h"

namespace probe {

inline const Metrics kInstructions = {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                                      "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
                                      "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"};
inline const Metrics kHardware = {"gpu__time_duration.sum", "sm__cycles_elapsed.max",
                                  "sm__cycles_active.sum"};
// Never one pass: this is replayed.
inline const Metrics kBoth = {kInstructions[0], kHardware[0]};

extern float* scratch;  // 16 MiB of device memory

// One warp that executes exactly `steps` fused multiply-adds per thread.
void launch(int steps, cudaStream_t stream = nullptr);
// What kInstructions[0] says of it.
inline int steps_of(const std::vector<double>& values) { return static_cast<int>(values[0] / 32); }
// Of back-to-back launches of a whole GPU's worth of blocks, ended by a synchronisation.
double microseconds_per_launch(int launches, int steps);

// Each asks one question, and prints what it saw.
void activity();
void beside_capture();
void callback();
void cost();
void graph();
void graph_alone();
void in_callback();
void machine();
void memory();
void order();
void overlap();
void sparsity();
void thread();
void unlocked();
void user_range();

}  // namespace probe
