#include "sections/parts/terms.h"

#include <algorithm>
#include <array>
#include <string>

namespace flopinj::reduce {
namespace {

constexpr std::array kFigures = {
    Term{"Executed", "floating-point operations that the GPU executed, padding of tiles included"},
    Term{"HFU", "hardware FLOP utilization: executed FLOP / (wall time x peak)"},
    Term{"MFU",
         "model FLOP utilization: FLOP that the model needs by formula / (wall time x peak); work "
         "that is done twice (recomputation) counts once"},
    Term{"Kernel time", "sum of the durations of all kernels; kernels that overlap count each"},
    Term{"Backward/fwd",
         "executed FLOP of backward / those of forward; about 2, and less where the first layer "
         "needs no gradient of its input"},
    Term{"Coverage", "share of launches that have a FLOP count, measured or extrapolated"},
    Term{"Profiler cost",
         "time that the profiler took from the program: callbacks, reading counters, start"},
};

constexpr std::array kColumns = {
    Term{"flop", "floating-point operations executed; one fused multiply-add counts 2 (--fma)"},
    Term{"flop_share", "share of the FLOP of the whole run"},
    Term{"op", "integer operations of tensor cores; they are in no FLOP figure"},
    Term{"matrix_flop", "FLOP of fused multiply-adds and tensor cores: matrix products"},
    Term{"launches", "how often the kernel was launched, kernels of graphs included"},
    Term{"unmeasured_launches", "launches without a FLOP count; figures beside them are marked >="},
    Term{"gpu_time_ns", "sum of the durations of these kernels on the GPU"},
    Term{"gpu_time_share", "share of the GPU time of the whole run"},
    Term{"each_ns", "mean GPU time of one launch"},
    Term{"kernels.min_ns", "shortest GPU time of a launch, outside of reading counters"},
    Term{"kernels.median_ns", "half of the launches take less, to within 0.8 %"},
    Term{"kernels.max_ns", "longest GPU time of a launch, outside of reading counters"},
    Term{"flop_per_s", "FLOP / GPU time"},
    Term{"flop_per_byte", "arithmetic intensity: FLOP / bytes of DRAM traffic"},
    Term{"byte_per_s", "DRAM traffic / GPU time"},
    Term{"utilization", "FLOP / (GPU time x peak), each precision against its own peak"},
    Term{"roof_share",
         "share of the roofline that is reached: the least time that peak FLOP/s and DRAM "
         "bandwidth allow / GPU time"},
    Term{"bound_by",
         "what limits the kernel: the nearer roof (memory, or a precision's peak) where it reaches "
         "60 % of it, else latency"},
    Term{"nearer_roof", "the roof that allows the least, however far below it the kernel is"},
    Term{"utilization_wall", "FLOP / (wall time x peak)"},
    Term{"utilization_first_to_last",
         "FLOP / (time from the first to the last kernel x peak): start-up is left out"},
    Term{"utilization_busy", "FLOP / (time in which some kernel ran x peak)"},
    Term{"utilization_gpu_time", "FLOP / (sum of kernel durations x peak)"},
    Term{"calls", "calls of the operator; an estimate where no sequence numbers tell"},
    Term{"formula_flop", "FLOP by the operator's formula, from the sizes of its arguments"},
    Term{"executed_formula_ratio",
         "executed FLOP / FLOP by formula; above 1: padding of tiles, another algorithm"},
    Term{"cause", "why executed and formula differ, as far as the trace shows"},
    Term{"evidence", "what in the trace the cause is taken from"},
    Term{"forward_flop", "executed FLOP of forward"},
    Term{"backward_flop", "executed FLOP of backward"},
    Term{"forward_formula_flop", "FLOP of forward by formula"},
    Term{"backward_formula_flop", "FLOP of backward by formula"},
    Term{"forward_gpu_time_ns", "GPU time of forward"},
    Term{"backward_gpu_time_ns", "GPU time of backward"},
    Term{"forward_share", "share of the FLOP of the whole forward pass"},
    Term{"ratio", "backward / forward, matrix work"},
    Term{"expected_ratio", "backward / forward by theory, from the gradients that were computed"},
    Term{"measured", "launches whose counters were read"},
    Term{"extrapolated", "launches that have their count from measured launches of their kernel"},
    Term{"unmeasured", "launches without a FLOP count"},
    Term{"dropped", "launches that were lost on their way into the trace"},
    Term{"samples", "readings of counters"},
    Term{"flop_low", "lower end of the 95 % interval"},
    Term{"flop_high", "upper end of the 95 % interval"},
    Term{"flop_reach_share", "half of the 95 % interval, as a share of the FLOP"},
    Term{"wall_ns", "how long the recording took"},
    Term{"wall_share", "share of wall time"},
    Term{"own_ns", "time that the profiler took from this process"},
    Term{"start_skew_ns", "how long after the first process this one began, by the hosts' clocks"},
    Term{"clock_khz", "highest clock of the process's GPUs"},
    Term{"callbacks_ns", "the profiler's work inside launches"},
    Term{"windows_ns", "time that reading counters cost"},
    Term{"startup_ns", "time that the library took to start"},
    Term{"helper_cpu_ns", "CPU time of the library's own threads"},
    Term{"written_bytes", "size of the trace"},
    Term{"budget_share", "what reading counters may cost, as a share of wall time (--budget)"},
    Term{"covered_launches_share", "share of launches whose kernel has complete counts"},
    Term{"covered_gpu_time_share", "share of GPU time of kernels that have complete counts"},
    Term{"gaps", "times in which no kernel ran"},
    Term{"idle_ns", "time between the first and the last kernel in which none ran"},
    Term{"busy_ns", "time in which some kernel ran"},
    Term{"flop_per_launch", "FLOP of one launch"},
    Term{"change", "same, changed, appeared (in B only) or vanished (in A only)"},
    Term{"launches_a", "launches in A"},
    Term{"launches_b", "launches in B"},
    Term{"flop_per_launch_a", "FLOP of one launch in A"},
    Term{"flop_per_launch_b", "FLOP of one launch in B"},
    Term{"flop_ratio", "FLOP of all launches, B / A, normalized where --normalize says so"},
    Term{"gpu_time_a_ns", "GPU time in A"},
    Term{"gpu_time_b_ns", "GPU time in B"},
    Term{"gpu_time_ratio", "GPU time, B / A, normalized where --normalize says so"},
    Term{"ranks.flop", "FLOP executed by this process"},
    Term{"overhead.wall_share", "the profiler's cost as a share of the process's wall time"},
    Term{"utilization.flop", "FLOP that the method counts"},
};

std::string_view find(std::span<const Term> terms, std::string_view key) {
  const auto found = std::ranges::find(terms, key, &Term::key);
  return found == terms.end() ? std::string_view() : found->meaning;
}

}  // namespace

std::span<const Term> figure_terms() { return kFigures; }
std::span<const Term> column_terms() { return kColumns; }

std::string_view meaning_of_figure(std::string_view name) { return find(kFigures, name); }

std::string_view meaning_of_column(std::string_view table, std::string_view key) {
  const std::string_view own = find(kColumns, std::string(table) + "." + std::string(key));
  return own.empty() ? find(kColumns, key) : own;
}

}  // namespace flopinj::reduce
