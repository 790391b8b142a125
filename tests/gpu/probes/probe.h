// What the probes share: sets of metrics, a kernel that is recognised by its count, and the probes
// by name.
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
void beside_capture();
void callback();
void capture_first_launch();
void captured_nodes();
void close_at_enter();
void cost();
void counters();
void decode_without_stop();
void enable_and_disable();
void finalize_at_exit();
void graph();
void graph_alone();
void green_context();
void handed_registers();
void handles_given();
void in_callback();
void large_graph();
void launch_kinds();
void launch_limits();
void library_kernel();
void machine();
void memory();
void memory_held();
void memory_in_window();
void module_in_window();
void order();
void overlap();
void sixteen_threads();
void sparsity();
void stop_at_exit();
void tensor_map();
void thread();
void two_contexts();
void unlocked();
void user_range();
void user_range_in_flight();
void waiting_in_flight();

}  // namespace probe
