// CUfunction handles -> kernel functions.
//
// Handles are reused after a module is unloaded, so every entry is of an epoch that ends with any
// unload, and its name is compared with the one CUPTI tells for the launch.
#pragma once
#include <collector/signature_table.h>
#include <cuda.h>
#include <injector/edge.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace flopinj {

struct ThreadCache;

class Functions {
 public:
  explicit Functions(Edge& edge) : edge_(edge) {}

  // `symbol` is the name CUPTI gives at a launch; null elsewhere (graph nodes), then the driver is
  // asked. Null when the function cannot be named or the collector's table is full. A hit takes no
  // lock.
  const KernelFunction* find(ThreadCache&, CUfunction, const char* symbol);
  // The same kernel, its parameters not readable (legacy launches).
  const KernelFunction* without_parameters(const KernelFunction&);
  const KernelFunction* of_kernel(ThreadCache&, CUkernel);

  void module_unloading();

 private:
  static constexpr size_t kMost = 65'536;
  const KernelFunction* find_shared(CUfunction, const char* symbol, uint32_t epoch);
  FunctionInfo describe(CUfunction, const char* symbol) const;
  bool read_parameters(CUfunction, FunctionInfo&) const;

  Edge& edge_;
  std::atomic<uint32_t> epoch_{1};
  std::mutex mutex_;
  std::unordered_map<CUfunction, const KernelFunction*> shared_;
};

}  // namespace flopinj
