#include "option_help.h"

#include <algorithm>
#include <utility>

namespace flopinj {
namespace {

constexpr std::pair<std::string_view, std::string_view> kHelp[] = {
    {"FLOPINJ_OUTPUT",
     "Trace to write (flop-%p.pb): a file, a FIFO, - for stdout, unix:/path for a listening "
     "socket. %p is the process id, %h the host, %r the rank in the job, %q{NAME} an environment "
     "variable"},
    {"FLOPINJ_FORCE", "Overwrite traces of this user that are older than the run"},
    {"FLOPINJ_QUIET",
     "Say nothing on stderr when the recording has ended. Else one line says what was recorded and "
     "how to read it, or why nothing was"},
    {"FLOPINJ_NO_COMMAND_LINE",
     "Leave the program's command line out of the trace. Else it is there, with [hidden] for the "
     "values of options whose names hold a word such as password, secret or token"},
    {"FLOPINJ_JOB",
     "Name of the job that the program is part of, for reports of several. Not given: "
     "SLURM_JOB_ID, PBS_JOBID, LSB_JOBID, FLUX_JOB_ID or TORCHELASTIC_RUN_ID, where one is set"},
    {"FLOPINJ_LABEL",
     "Words by which the job is found again, such as team=vision,model=llama; reports and flopinj "
     "fleet have them. May be repeated. cluster, user, account, partition, job_name, namespace and "
     "pod are taken from Slurm, PBS, LSF, KubeRay and Kubernetes where they say so"},
    {"FLOPINJ_DORMANT",
     "Record nothing until flopinj attach asks for it: until then the library costs nothing"},
    {"FLOPINJ_START_AFTER",
     "Begin to record so long after the program starts CUDA: 500ms, 30s, 5m, 2h"},
    {"FLOPINJ_DURATION", "Record for so long, then let go of the program: 500ms, 30s, 5m, 2h"},
    {"FLOPINJ_KERNEL_NAME",
     "Record launches of kernels of this name only, or of names in which the expression is found, "
     "as in ncu"},
    {"FLOPINJ_KERNEL_NAME_BASE",
     "Name that --kernel-name goes by. function: without namespaces, template arguments and "
     "parameters (the default, as in ncu); mangled: as the driver has it"},
    {"FLOPINJ_NVTX_INCLUDE",
     "Record launches inside these NVTX ranges only, as in ncu: A/ is the push/pop range A, A the "
     "start/end range; A/B: B directly in A, A/*/B: anywhere in it, A/+/B: with one range between; "
     "[A, A]: the outermost, the innermost; D@A/: of the domain D; A,B: inside both start/end "
     "ranges. A vertical bar between two: inside either (ncu: the option twice). No regex:"},
    {"FLOPINJ_STEP_RANGE",
     "NVTX range around each training step, push/pop or start/end, in any domain; a number at its "
     "end does not matter. A vertical bar between two: either. none: steps are not recorded. Not "
     "given: step, iteration, train_step, ProfilerStep#3 and the like"},
    {"FLOPINJ_LAUNCH_SKIP",
     "Pass over the first N launches, of those that --kernel-name and --nvtx-include choose, as in "
     "ncu. A launch of a CUDA graph is one"},
    {"FLOPINJ_LAUNCH_COUNT",
     "Record N launches, counted as for --launch-skip and after those, then let go of the program, "
     "as in ncu"},
    {"FLOPINJ_CAPTURE_RANGE",
     "cudaProfilerApi: record from the program's first call of cudaProfilerStart to its "
     "cudaProfilerStop, as nsys does with --capture-range-end stop, and lie dormant before and "
     "after. none: from the start (the default)"},
    {"FLOPINJ_METRICS_FILE",
     "File for the textfile collector of Prometheus' node exporter, named as for --output and "
     "ending in .prom: launches, coverage, own cost and energy, written anew every 5 s and removed "
     "when the recording ends. FLOP, HFU and MFU: flopinj metrics"},
    {"FLOPINJ_NO_ENERGY",
     "Do not ask NVML for the energy of the GPUs. Else it is asked once a second, where the driver "
     "has it: libnvidia-ml.so.1"},
    {"FLOPINJ_NO_CONTROL",
     "Listen to no flopinj attach, detach or status: no socket and no thread for them"},
    {"FLOPINJ_LEVEL", "launches: every launch; tally: counts per kernel and range"},
    {"FLOPINJ_MODE",
     "multiplex: each distinct kernel is measured a few times, all are timed and counted; full: "
     "every launch is measured, by replay: slow, the reference; timing: no counters; count: only "
     "launches; off: nothing"},
    {"FLOPINJ_BUDGET",
     "Most that reading counters may cost, in per cent of wall time, or none (1). The share of 200 "
     "s, 2 s at 1 %, may be used at once at the start, on kernels without counts"},
    {"FLOPINJ_UNTIL_COVERED",
     "Stop measuring once so many per cent of GPU time have had complete counts for 5 s; kernels "
     "that cannot be measured are left out"},
    {"FLOPINJ_MEASURE_RANKS",
     "Ranks of the job that read counters, the others count and time: 0,8-15 or all or none (0)"},
    {"FLOPINJ_GRAPHS",
     "Read counters of kernels that run only in CUDA graphs, in windows around graph launches. "
     "checked: once a kernel had the same counts in a graph and outside; on: of programs without "
     "such a kernel, too; off: not. Not given: on where flopinj doctor --count has shown that it "
     "works, else off"},
    {"FLOPINJ_NEVER_MEASURE",
     "Kernels that wait for the host or for a later launch, and so would hang while they are "
     "measured: parts of their mangled names, in any case, beside the built-in ones that doctor "
     "shows. May be repeated; flopinj attach adds to those of the start"},
    {"FLOPINJ_CLOSE_WINDOWS",
     "Where windows in which counters are read are closed: at the exit of their last launch, at "
     "the enter of the launch behind it, or at that only on the thread that opened them (own). Not "
     "given: learned from the first windows"},
    {"FLOPINJ_LOG",
     "What the library says on stderr: off, error, warn (the default), info, or debug, which has a "
     "line for every measurement window"},
    {"FLOPINJ_FLUSH_MS",
     "Longest time that data stays in memory, in milliseconds, 10 to 1000 (250)"},
    {"FLOPINJ_PLAN_WAIT_MS",
     "How long a context's first launch waits for the counters to be ready, in milliseconds, so "
     "that it is measured too (0; mode full: 60000)"},
    {"FLOPINJ_CUPTI", "The libcupti to load, where the program brings none"},
    {"FLOPINJ_FINDINGS",
     "Folder with the findings of flopinj doctor --count, which say what to leave out "
     "(~/.local/state/flopinj)"},
    {"FLOPINJ_RUN", "Set by flopinj run: when the run began, and where its watcher listens"},
};

}  // namespace

std::string_view help_of(std::string_view variable) {
  const auto at = std::ranges::find(kHelp, variable, [](const auto& row) { return row.first; });
  return at != std::end(kHelp) ? at->second : std::string_view();
}

}  // namespace flopinj
