#include "driver_link.h"

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>

namespace simgpu::cupti {
namespace {

using GetExportTable = CUresult(CUDAAPI*)(const void**, const CUuuid*);

GetExportTable find_get_export_table() {
  constexpr const char* kSymbol = "cuGetExportTable";
  void* symbol = nullptr;
  if (void* loaded = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD))
    symbol = dlsym(loaded, kSymbol);
  if (symbol == nullptr) symbol = dlsym(RTLD_DEFAULT, kSymbol);
  if (symbol == nullptr)
    if (void* fresh = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL))
      symbol = dlsym(fresh, kSymbol);
  return reinterpret_cast<GetExportTable>(symbol);
}

}  // namespace

bool driver_is_loaded() { return find_get_export_table() != nullptr; }

const Driver* link_driver() {
  const GetExportTable get = find_get_export_table();
  const void* table = nullptr;
  if (get == nullptr || get(&table, &kHooksUuid) != CUDA_SUCCESS || table == nullptr)
    return nullptr;
  const auto* driver = static_cast<const Driver*>(table);
  if (driver->abi_version == kAbiVersion) return driver;
  std::fprintf(
      stderr,
      "simgpu: libcuda.so.1 and libcupti.so.13 are from different builds (seam %u and %u)\n",
      driver->abi_version, kAbiVersion);
  return nullptr;
}

}  // namespace simgpu::cupti
