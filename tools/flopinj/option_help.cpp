#include "option_help.h"

#include <algorithm>

namespace flopinj {
namespace {

constexpr const char *kUsual = kRunGroups[0], *kWhat = kRunGroups[1], *kJob = kRunGroups[2],
                     *kOfExperts = kRunGroups[4];
struct Help {
  std::string_view variable;
  const char* group;
  std::string_view text;
};
constexpr Help kHelp[] = {
    {"FLOPINJ_OUTPUT", kUsual,
     "Trace to write (flop-%p.pb): a file, a FIFO, - for stdout, unix:/path for a listening "
     "socket. %p is the process id, %h the host, %r the rank in the job, %q{NAME} an environment "
     "variable"},
    {"FLOPINJ_FORCE", kUsual, "Overwrite traces of this user that are older than the run"},
    {"FLOPINJ_QUIET", kUsual,
     "Print nothing on stderr when the recording has ended. Without it one line says what was "
     "recorded and how to read it, or why nothing was"},
    {"FLOPINJ_NO_COMMAND_LINE", kJob,
     "Leave the program's command line out of the trace. Without it the trace has the command "
     "line, with [hidden] for the values of options whose names contain a word such as password, "
     "secret or token"},
    {"FLOPINJ_JOB", kJob,
     "Name of the job that the program belongs to, for reports of several processes. If not given:"
     " SLURM_JOB_ID, PBS_JOBID, LSB_JOBID, FLUX_JOB_ID or TORCHELASTIC_RUN_ID, where one is set"},
    {"FLOPINJ_LABEL", kJob,
     "Labels of the job for reports and flopinj fleet, such as team=vision,model=llama. May be "
     "repeated. cluster, user, account, partition, job_name, namespace and pod are taken from "
     "Slurm, PBS, LSF, KubeRay and Kubernetes where these set them"},
    {"FLOPINJ_DORMANT", kWhat,
     "Record nothing until flopinj attach asks for it. Until then the library costs nothing"},
    {"FLOPINJ_START_AFTER", kWhat,
     "Begin to record this long after the program starts CUDA: 500ms, 30s, 5m, 2h"},
    {"FLOPINJ_DURATION", kWhat,
     "Record for this long, then detach from the program: 500ms, 30s, 5m, 2h"},
    {"FLOPINJ_KERNEL_NAME", kWhat,
     "Record only launches of kernels with this name, or whose name contains a match of the "
     "expression, as in ncu"},
    {"FLOPINJ_KERNEL_NAME_BASE", kWhat,
     "Which name --kernel-name is compared with. function: without namespaces, template arguments "
     "and parameters (the default, as in ncu); mangled: as the driver has it"},
    {"FLOPINJ_NVTX_INCLUDE", kWhat,
     "Record only launches inside these NVTX ranges, as in ncu: A/ is the push/pop range A, A the "
     "start/end range; A/B: B directly in A, A/*/B: anywhere in it, A/+/B: with one range between;"
     " [A, A]: the outermost, the innermost; D@A/: of the domain D; A,B: inside both start/end "
     "ranges; A|B: inside either (ncu: the option twice). Names are literal: expressions (ncu's "
     "regex:) are not taken"},
    {"FLOPINJ_STEP_RANGE", kWhat,
     "NVTX range around each training step, push/pop or start/end, in any domain, with or without "
     "a number at its end; A|B: either. none: no steps are recorded. If not given: step, "
     "iteration, train_step, ProfilerStep#3 and similar names"},
    {"FLOPINJ_LAUNCH_SKIP", kWhat,
     "Skip the first N of the launches that --kernel-name and --nvtx-include choose, as in ncu. A "
     "launch of a CUDA graph counts as one"},
    {"FLOPINJ_LAUNCH_COUNT", kWhat,
     "After those that --launch-skip skips, record N launches, then detach from the program, as in"
     " ncu"},
    {"FLOPINJ_CAPTURE_RANGE", kWhat,
     "cudaProfilerApi: record from the program's first call of cudaProfilerStart to its "
     "cudaProfilerStop, as nsys does with --capture-range-end stop, and nothing before and after. "
     "none: from the start (the default)"},
    {"FLOPINJ_METRICS_FILE", kJob,
     "File for the textfile collector of Prometheus' node exporter, named as for --output and "
     "ending in .prom: launches, coverage, own cost and energy, written anew every 5 s and removed "
     "when the recording ends. FLOP, HFU and MFU: flopinj metrics"},
    {"FLOPINJ_HOST_TIMES", kWhat,
     "Record when the program called for launches, and where it was before, so that idle time in "
     "which the host was late has a line of its own in where the peak went. A launch takes about "
     "15 ns longer"},
    {"FLOPINJ_NO_COPIES", kWhat,
     "Do not ask CUPTI for the times of copies and fills of memory. Then where the peak went does "
     "not say how long the GPU was idle while they ran"},
    {"FLOPINJ_NO_ENERGY", kWhat,
     "Do not ask NVML for the energy of the GPUs. Without it NVML is asked once a second, where "
     "the driver has it (libnvidia-ml.so.1)"},
    {"FLOPINJ_NO_CONTROL", kOfExperts,
     "Do not listen to flopinj attach, detach and status: no socket and no thread for them. The "
     "program itself may still ask, as flopinj.record() does"},
    {"FLOPINJ_LEVEL", kWhat, "launches: every launch; tally: counts per kernel and range"},
    {"FLOPINJ_MODE", kUsual,
     "multiplex: each distinct kernel is measured a few times, and every launch is timed and "
     "counted; full: every launch is measured, by replay (slow; the reference); timing: no "
     "counters; count: only launches; off: nothing"},
    {"FLOPINJ_BUDGET", kUsual,
     "Upper limit for what reading counters may cost, in percent of wall time; none: no limit (1)."
     " The budget of 200 s (2 s at 1 %) may be spent right at the start, on kernels without "
     "counts"},
    {"FLOPINJ_UNTIL_COVERED", kWhat,
     "Stop measuring when, for 5 s, this percentage of GPU time was in kernels with complete "
     "counts. Kernels that cannot be measured are left out of it"},
    {"FLOPINJ_MEASURE_RANKS", kJob,
     "Ranks of the job that read counters: 0,8-15 or all or none (0). The others only count and "
     "time launches"},
    {"FLOPINJ_NEVER_MEASURE", kWhat,
     "Never measure kernels whose mangled names contain PATTERN (case is ignored): kernels that "
     "wait for the host or for a later launch would hang. This is in addition to the built-in "
     "patterns, which flopinj doctor lists. May be repeated; flopinj attach adds to those given at"
     " the start"},
    {"FLOPINJ_LOG", kOfExperts,
     "What the library prints on stderr: off, error, warn (the default), info, or debug (a line "
     "for every measurement window)"},
    {"FLOPINJ_FLUSH_MS", kOfExperts,
     "Longest time that data stays in memory, in milliseconds, 10 to 1000 (250)"},
    {"FLOPINJ_PLAN_WAIT_MS", kOfExperts,
     "How long the first launch of a context waits for the counters to be ready, in milliseconds, "
     "so that it can be measured too (0; mode full: 60000)"},
    {"FLOPINJ_CUPTI", kOfExperts,
     "The libcupti to use, or a folder that has one, also as pip's --target fills it. It is "
     "preloaded, so that it takes the place of the program's own"},
    {"FLOPINJ_FINDINGS", kOfExperts,
     "Folder with the findings of flopinj doctor --count, which say which metrics to leave out "
     "(~/.local/state/flopinj)"},
    {"FLOPINJ_RUN", kOfExperts,
     "Set by flopinj run: when the run began, and where its watcher listens"},
};

const Help* row_of(std::string_view variable) {
  const auto* at = std::ranges::find(kHelp, variable, &Help::variable);
  return at != std::end(kHelp) ? at : nullptr;
}

}  // namespace

std::string_view help_of(std::string_view variable) {
  const Help* row = row_of(variable);
  return row != nullptr ? row->text : std::string_view();
}

const char* group_of(std::string_view variable) {
  const Help* row = row_of(variable);
  return row != nullptr ? row->group : kOfExperts;
}

}  // namespace flopinj
