#include <injector/vendor/cupti_check.h>

#include <array>
#include <cstddef>

namespace flopinj {
namespace {

// By number, without "CUPTI_ERROR_", as in the headers of CUPTI 13.5, which have all that those of
// earlier ones have. The first is no error. CUPTI's own cuptiGetResultString is not asked: where
// CUPTI 13.2 cannot initialise itself, it and cuptiGetVersion call each other without end.
// clang-format off
constexpr std::array kNames{
    "", "INVALID_PARAMETER", "INVALID_DEVICE", "INVALID_CONTEXT", "INVALID_EVENT_DOMAIN_ID",
    "INVALID_EVENT_ID", "INVALID_EVENT_NAME", "INVALID_OPERATION", "OUT_OF_MEMORY", "HARDWARE",
    "PARAMETER_SIZE_NOT_SUFFICIENT", "API_NOT_IMPLEMENTED", "MAX_LIMIT_REACHED", "NOT_READY",
    "NOT_COMPATIBLE", "NOT_INITIALIZED", "INVALID_METRIC_ID", "INVALID_METRIC_NAME",
    "QUEUE_EMPTY", "INVALID_HANDLE", "INVALID_STREAM", "INVALID_KIND", "INVALID_EVENT_VALUE",
    "DISABLED", "INVALID_MODULE", "INVALID_METRIC_VALUE", "HARDWARE_BUSY", "NOT_SUPPORTED",
    "UM_PROFILING_NOT_SUPPORTED", "UM_PROFILING_NOT_SUPPORTED_ON_DEVICE",
    "UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES", "UM_PROFILING_NOT_SUPPORTED_WITH_MPS",
    "CDP_TRACING_NOT_SUPPORTED", "VIRTUALIZED_DEVICE_NOT_SUPPORTED",
    "CUDA_COMPILER_NOT_COMPATIBLE", "INSUFFICIENT_PRIVILEGES", "OLD_PROFILER_API_INITIALIZED",
    "OPENACC_UNDEFINED_ROUTINE", "LEGACY_PROFILER_NOT_SUPPORTED",
    "MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
    "CONFIDENTIAL_COMPUTING_NOT_SUPPORTED", "CMP_DEVICE_NOT_SUPPORTED",
    "MIG_DEVICE_NOT_SUPPORTED", "SLI_DEVICE_NOT_SUPPORTED", "WSL_DEVICE_NOT_SUPPORTED",
    "INVALID_CHIP_NAME", "HES_TRACE_NOT_SUPPORTED_ON_MPS"};
// clang-format on
static_assert(kNames.size() == 48);

enum class Lasts : uint8_t { kForGood, kForNow };
struct Advice {
  CUptiResult result;
  Lasts lasts;
  const char* code;
  const char* text;
};

constexpr std::array kAdvice{
    Advice{CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, Lasts::kForGood, "counters.privileges",
           "reading GPU counters is reserved for administrators here: run as root, with "
           "CAP_SYS_ADMIN or (driver R565 and later) CAP_PERFMON, or load the driver with "
           "NVreg_RestrictProfilingToAdminUsers=0"},
    Advice{
        CUPTI_ERROR_HARDWARE_BUSY, Lasts::kForNow, "counters.busy",
        "another program holds the GPU's counters: end it if it is Nsight Compute, Nsight Systems "
        "or another profiler; on GPUs before Hopper it may be DCGM: run `dcgmi profile --pause`"},
    Advice{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, Lasts::kForGood, "cupti.subscriber",
           "another CUPTI client is in this process: torch.profiler (turn it off), Nsight Systems "
           "or Nsight Compute (run without), or cuda-gdb"},
    Advice{CUPTI_ERROR_NOT_INITIALIZED, Lasts::kForGood, "cupti.driver",
           "this CUPTI cannot work with the driver, which may be older: name the CUPTI of a CUDA "
           "version that `nvidia-smi` shows, or of an older one, by --cupti"},
    Advice{CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, Lasts::kForGood, "counters.vgpu",
           "the GPU is virtual (vGPU): ask its administrator to enable profiling"},
    Advice{CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, Lasts::kForGood, "counters.vgpu",
           "profiling is switched off for this virtual GPU: ask its administrator to enable it"},
    Advice{CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, Lasts::kForGood,
           "counters.confidential",
           "the GPU is in confidential-computing mode, where counters cannot be read"},
    Advice{kMigNotSupported, Lasts::kForGood, "counters.mig",
           "counters cannot be read on this MIG instance: use a whole GPU"},
    Advice{kSliNotSupported, Lasts::kForGood, "counters.sli",
           "counters cannot be read while SLI is on: switch it off"},
    Advice{kWslNotSupported, Lasts::kForGood, "counters.wsl",
           "counters cannot be read in this WSL configuration"},
    Advice{CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, Lasts::kForGood, "counters.cmp",
           "this is a mining processor (CMP), whose counters cannot be read"},
    Advice{CUPTI_ERROR_INVALID_METRIC_NAME, Lasts::kForGood, "counters.metric",
           "this CUPTI does not know a metric of the plan"},
    Advice{CUPTI_ERROR_OUT_OF_MEMORY, Lasts::kForNow, "counters.memory",
           "there is not enough memory"},
};

}  // namespace

std::string describe(CUptiResult result) {
  const auto number = static_cast<size_t>(result);
  std::string name = "CUPTI error";
  if (result == CUPTI_SUCCESS)
    name = "CUPTI_SUCCESS";
  else if (number < kNames.size())
    name = std::string("CUPTI_ERROR_") + kNames[number];
  if (result == CUPTI_ERROR_UNKNOWN) name = "CUPTI_ERROR_UNKNOWN";
  return name + " (" + std::to_string(number) + ")";
}

bool check(CUptiResult result, const char* call, Problem& problem) {
  if (result == CUPTI_SUCCESS) return true;
  problem.code = "counters.failed";
  problem.lasting = problem.passing = false;
  problem.line = std::string(call) + " failed with " + describe(result);
  for (const Advice& advice : kAdvice)
    if (advice.result == result) {
      problem.code = advice.code;
      problem.lasting = advice.lasts == Lasts::kForGood;
      problem.passing = advice.lasts == Lasts::kForNow;
      problem.line = std::string(advice.text) + " (" + problem.line + ")";
    }
  return false;
}

}  // namespace flopinj
