#include <injector/vendor/cupti_check.h>

#include <array>
#include <cstddef>

namespace flopinj {
namespace {

// By number, as in the headers of CUPTI 13.5, which have all that those of earlier ones have.
// CUPTI's own cuptiGetResultString is not asked: in 13.2 it calls cuptiGetVersion, which calls it,
// for ever where CUPTI cannot initialise itself.
constexpr std::array kNames{
    "CUPTI_SUCCESS",
    "CUPTI_ERROR_INVALID_PARAMETER",
    "CUPTI_ERROR_INVALID_DEVICE",
    "CUPTI_ERROR_INVALID_CONTEXT",
    "CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID",
    "CUPTI_ERROR_INVALID_EVENT_ID",
    "CUPTI_ERROR_INVALID_EVENT_NAME",
    "CUPTI_ERROR_INVALID_OPERATION",
    "CUPTI_ERROR_OUT_OF_MEMORY",
    "CUPTI_ERROR_HARDWARE",
    "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT",
    "CUPTI_ERROR_API_NOT_IMPLEMENTED",
    "CUPTI_ERROR_MAX_LIMIT_REACHED",
    "CUPTI_ERROR_NOT_READY",
    "CUPTI_ERROR_NOT_COMPATIBLE",
    "CUPTI_ERROR_NOT_INITIALIZED",
    "CUPTI_ERROR_INVALID_METRIC_ID",
    "CUPTI_ERROR_INVALID_METRIC_NAME",
    "CUPTI_ERROR_QUEUE_EMPTY",
    "CUPTI_ERROR_INVALID_HANDLE",
    "CUPTI_ERROR_INVALID_STREAM",
    "CUPTI_ERROR_INVALID_KIND",
    "CUPTI_ERROR_INVALID_EVENT_VALUE",
    "CUPTI_ERROR_DISABLED",
    "CUPTI_ERROR_INVALID_MODULE",
    "CUPTI_ERROR_INVALID_METRIC_VALUE",
    "CUPTI_ERROR_HARDWARE_BUSY",
    "CUPTI_ERROR_NOT_SUPPORTED",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS",
    "CUPTI_ERROR_CDP_TRACING_NOT_SUPPORTED",
    "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_CUDA_COMPILER_NOT_COMPATIBLE",
    "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
    "CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED",
    "CUPTI_ERROR_OPENACC_UNDEFINED_ROUTINE",
    "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED",
    "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
    "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
    "CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_INVALID_CHIP_NAME",
    "CUPTI_ERROR_HES_TRACE_NOT_SUPPORTED_ON_MPS",
};
static_assert(kNames.size() == 48);

struct Advice {
  CUptiResult result;
  bool lasting;
  const char* code;
  const char* text;
};

constexpr std::array kAdvice{
    Advice{CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, true, "counters.privileges",
           "reading GPU counters is reserved for administrators here: run as root, with "
           "CAP_SYS_ADMIN or (driver R565 and later) CAP_PERFMON, or load the driver with "
           "NVreg_RestrictProfilingToAdminUsers=0"},
    Advice{
        CUPTI_ERROR_HARDWARE_BUSY, false, kCountersBusy,
        "another program holds the GPU's counters: end it if it is Nsight Compute, Nsight Systems "
        "or another profiler; on GPUs before Hopper it may be DCGM: run `dcgmi profile --pause`"},
    Advice{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, true, "cupti.subscriber",
           "another CUPTI client is in this process: torch.profiler (turn it off), Nsight Systems "
           "or Nsight Compute (run without), or cuda-gdb"},
    Advice{CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, true, "counters.vgpu",
           "the GPU is virtual (vGPU): ask its administrator to enable profiling"},
    Advice{CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, true, "counters.vgpu",
           "profiling is switched off for this virtual GPU: ask its administrator to enable it"},
    Advice{CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, true, "counters.confidential",
           "the GPU is in confidential-computing mode, where counters cannot be read"},
    Advice{kMigNotSupported, true, "counters.mig",
           "counters cannot be read on this MIG instance: use a whole GPU"},
    Advice{kSliNotSupported, true, "counters.sli",
           "counters cannot be read while SLI is on: switch it off"},
    Advice{kWslNotSupported, true, "counters.wsl",
           "counters cannot be read in this WSL configuration"},
    Advice{CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, true, "counters.cmp",
           "this is a mining processor (CMP), whose counters cannot be read"},
    Advice{CUPTI_ERROR_INVALID_METRIC_NAME, true, "counters.metric",
           "this CUPTI does not know a metric of the plan"},
    Advice{CUPTI_ERROR_OUT_OF_MEMORY, false, "counters.memory", "there is not enough memory"},
};

}  // namespace

std::string describe(CUptiResult result) {
  const auto number = static_cast<size_t>(result);
  std::string name = "CUPTI error";
  if (number < kNames.size()) name = kNames[number];
  if (result == CUPTI_ERROR_UNKNOWN) name = "CUPTI_ERROR_UNKNOWN";
  return name + " (" + std::to_string(number) + ")";
}

bool check(CUptiResult result, const char* call, Problem& problem) {
  if (result == CUPTI_SUCCESS) return true;
  problem.code = "counters.failed";
  problem.lasting = false;
  problem.line = std::string(call) + " failed with " + describe(result);
  for (const Advice& advice : kAdvice)
    if (advice.result == result) {
      problem.code = advice.code;
      problem.lasting = advice.lasting;
      problem.line = std::string(advice.text) + " (" + problem.line + ")";
    }
  return false;
}

}  // namespace flopinj
