#include <injector/cupti_check.h>

#include <array>

namespace flopinj {
namespace {

struct Advice {
  CUptiResult result;
  const char* code;
  const char* text;
};

constexpr std::array kAdvice{
    Advice{CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "counters.privileges",
           "reading GPU counters is reserved for administrators here: run as root, with "
           "CAP_SYS_ADMIN or (driver R565 and later) CAP_PERFMON, or load the driver with "
           "NVreg_RestrictProfilingToAdminUsers=0"},
    Advice{CUPTI_ERROR_HARDWARE_BUSY, "counters.busy",
           "another program holds the GPU's counters: if it is DCGM, run `dcgmi profile --pause`; "
           "otherwise end the other profiler"},
    Advice{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "cupti.subscriber",
           "another CUPTI client is in this process: torch.profiler (turn it off), Nsight Systems "
           "or Nsight Compute (run without), or cuda-gdb"},
    Advice{CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "counters.vgpu",
           "the GPU is virtual (vGPU): ask its administrator to enable profiling"},
    Advice{CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, "counters.vgpu",
           "profiling is switched off for this virtual GPU: ask its administrator to enable it"},
    Advice{CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "counters.confidential",
           "the GPU is in confidential-computing mode, where counters cannot be read"},
    Advice{kMigNotSupported, "counters.mig",
           "counters cannot be read on this MIG instance: use a whole GPU"},
    Advice{kSliNotSupported, "counters.sli",
           "counters cannot be read while SLI is on: switch it off"},
    Advice{kWslNotSupported, "counters.wsl", "counters cannot be read in this WSL configuration"},
    Advice{CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, "counters.cmp",
           "this is a mining processor (CMP), whose counters cannot be read"},
    Advice{CUPTI_ERROR_INVALID_METRIC_NAME, "counters.metric",
           "this CUPTI does not know a metric of the plan"},
    Advice{CUPTI_ERROR_OUT_OF_MEMORY, "counters.memory", "there is not enough memory"},
};

}  // namespace

bool check(const CuptiApi& cupti, CUptiResult result, const char* call, Problem& problem) {
  if (result == CUPTI_SUCCESS) return true;
  problem.code = "counters.failed";
  problem.line = std::string(call) + " failed with " + describe(cupti, result);
  for (const Advice& advice : kAdvice)
    if (advice.result == result) {
      problem.code = advice.code;
      problem.line = std::string(advice.text) + " (" + problem.line + ")";
    }
  return false;
}

}  // namespace flopinj
