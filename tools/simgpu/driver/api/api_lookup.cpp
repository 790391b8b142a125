// Start, errors, and finding functions by name.
#include <cstring>
#include <string_view>

#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/execution/clock.h"
#include "driver/graphs/graph_exec.h"
#include "driver/hooks_table.h"
#include "driver/refusals.h"

namespace simgpu::api {
namespace {

struct Entry {
  int version;
  std::string_view base;
  void* function;
  void* per_thread;  // the same with per-thread default stream
};

#define SIMGPU_POINTER(f) reinterpret_cast<void*>(&::f)
#define SIMGPU_API(version, base, name, params, args) \
  {version, #base, SIMGPU_POINTER(name), SIMGPU_POINTER(name)},
#define SIMGPU_PTSZ(version, base, name, params, args) \
  {version, #base, SIMGPU_POINTER(name), SIMGPU_POINTER(name##_ptsz)},
#define SIMGPU_PTDS(version, base, name, params, args) \
  {version, #base, SIMGPU_POINTER(name), SIMGPU_POINTER(name##_ptds)},
#define SIMGPU_EARLY SIMGPU_API
const Entry kEntries[] = {
#include "driver/api/api_calls.def"
};

struct ErrorText {
  CUresult error;
  const char* name;
  const char* text;
};
const ErrorText kErrors[] = {
#define SIMGPU_ERROR(name, text) {name, #name, text},
#include "driver/errors.def"
#undef SIMGPU_ERROR
};

CUresult give_text(CUresult error, const char* ErrorText::*text, const char** out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  for (const ErrorText& known : kErrors)
    if (known.error == error) *out = known.*text;
  return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuInit(unsigned int Flags) {
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Runtime::get().initialize();
}

CUresult cuDriverGetVersion(int* driverVersion) {
  if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = driver_version();
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** pStr) {
  return give_text(error, &ErrorText::name, pStr);
}

CUresult cuGetErrorString(CUresult error, const char** pStr) {
  return give_text(error, &ErrorText::text, pStr);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  constexpr cuuint64_t kFlags =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || pfn == nullptr || (flags & ~kFlags) != 0 || flags == kFlags)
    return CUDA_ERROR_INVALID_VALUE;
  *pfn = nullptr;
  const Entry* best = nullptr;
  bool known = false;
  for (const Entry& entry : kEntries) {
    if (entry.base != symbol || entry.version > driver_version()) continue;
    known = true;
    if (entry.version <= cudaVersion && (best == nullptr || entry.version > best->version))
      best = &entry;
  }
  const auto status = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
                      : known         ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (symbolStatus != nullptr) *symbolStatus = status;
  if (best == nullptr) return symbolStatus != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  *pfn = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 ? best->per_thread
                                                                      : best->function;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  return api::cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, nullptr);
}

CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (ppExportTable == nullptr || pExportTableId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *ppExportTable = nullptr;
  if (std::memcmp(pExportTableId, &kHooksUuid, sizeof kHooksUuid) != 0) {
    private_table_refused();
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (Runtime::get().settings().faults.no_export_table) return CUDA_ERROR_NOT_FOUND;
  *ppExportTable = hooks_table();
  return CUDA_SUCCESS;
}

}  // namespace simgpu::api
