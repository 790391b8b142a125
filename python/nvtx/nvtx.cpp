// NVTX ranges for Python: NVTX's header finds the tool by NVTX_INJECTION64_PATH, and calls it.
#include <nvtx3/nvToolsExt.h>

extern "C" {
__attribute__((visibility("default"))) int flopinj_nvtx_push(const char* name) {
  return nvtxRangePushA(name);
}
__attribute__((visibility("default"))) int flopinj_nvtx_pop() { return nvtxRangePop(); }
}
