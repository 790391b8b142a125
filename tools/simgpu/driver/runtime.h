// The one process-wide object of the driver: devices, live handles, counters. Created by cuInit,
// never destroyed, so that calls at process exit find it.
#pragma once
#include <cuda.h>

#include <atomic>
#include <memory>
#include <vector>

#include "driver/handle_table.h"
#include "driver/objects.h"
#include "driver/settings.h"

namespace simgpu {

struct Graph;
struct GraphNode;
struct GraphExec;
struct Pool;

class Runtime {
 public:
  static Runtime& get();

  // cuInit: reads the environment, makes the devices, then loads the injection library once. May be
  // re-entered by the injection library's InitializeInjection.
  CUresult initialize();
  bool initialized() const { return initialized_.load(std::memory_order_acquire); }

  const Settings& settings() const { return settings_; }
  int device_count() const { return static_cast<int>(devices_.size()); }
  Device* device(CUdevice ordinal) const;             // null when there is none
  Device* device_of_address(uint64_t address) const;  // the one whose memory it lies in, or null

  HandleTable<CUcontext, Context> contexts;
  HandleTable<CUgreenCtx, GreenContext> green_contexts;
  HandleTable<CUcontext, GreenContext> converted_contexts;  // by cuCtxFromGreenCtx
  HandleTable<CUstream, Stream> streams;
  HandleTable<CUevent, Event> events;
  HandleTable<CUmodule, Module> modules;
  HandleTable<CUfunction, Function> functions;
  HandleTable<CUlibrary, Library> libraries;
  HandleTable<CUkernel, Kernel> kernels;
  HandleTable<CUlinkState, Link> links;
  HandleTable<CUmemoryPool, Pool> pools;
  HandleTable<CUgraph, Graph> graphs;
  HandleTable<CUgraphNode, GraphNode> nodes;
  HandleTable<CUgraphExec, GraphExec> execs;

  uint32_t next_id(std::atomic<uint32_t>& counter) {
    return counter.fetch_add(1, std::memory_order_relaxed);
  }
  std::atomic<uint32_t> context_ids{1}, stream_ids{1}, module_ids{1}, graph_ids{1};
  std::atomic<uint64_t> node_ids{1};
  std::atomic<uint64_t> launches{0};  // kernels run in this process
  std::atomic<uint64_t> allocations{0};

 private:
  Runtime() = default;
  void load_injection();

  std::recursive_mutex init_mutex_;
  std::atomic<bool> initialized_{false};
  bool injected_ = false;
  CUresult init_result_ = CUDA_ERROR_NOT_INITIALIZED;
  Settings settings_;
  std::vector<std::unique_ptr<Device>> devices_;
};

// What a look-up found, or why it found nothing.
template <class T>
struct Found {
  CUresult error = CUDA_SUCCESS;
  std::shared_ptr<T> object;
  explicit operator bool() const { return object != nullptr; }
  T* operator->() const { return object.get(); }
};

}  // namespace simgpu
