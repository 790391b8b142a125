// A minimal NVTX tool, linked into the test program by NVTX's own hook for static tools: it keeps
// each thread's stack of open ranges. NVTX asks InitializeInjectionNvtx2_fnptr at its first call,
// for the table to fill in.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include "launch_recorder.h"

namespace {

thread_local std::vector<std::string> stack;

int NVTX_API push(const char* name) {
  stack.emplace_back(name);
  return static_cast<int>(stack.size()) - 1;
}

int NVTX_API pop() {
  stack.pop_back();
  return static_cast<int>(stack.size());
}

int NVTX_API initialize(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) {
    return 0;
  }
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}

}  // namespace

extern "C" {
extern NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = initialize;
}

std::string open_ranges() {
  std::string path;
  for (const std::string& name : stack) path += (path.empty() ? "" : "/") + name;
  return path;
}
