// The private seam between the two simulated libraries: reports of libcuda.so.1 to libcupti.so.13.
//
// The driver hands out a `Driver` table through cuGetExportTable(kHooksUuid); CUPTI installs one
// Observer in it. This mirrors the real pair, which also talk through an export table. No standard
// containers cross the seam.
#pragma once
#include <cuda.h>
#include <simgpu/counts.h>

#include <cstddef>
#include <cstdint>

namespace simgpu {

inline constexpr CUuuid kHooksUuid = {
    {'s', 'i', 'm', 'g', 'p', 'u', '-', 'h', 'o', 'o', 'k', 's', '-', 'v', '0', '1'}};

// One driver-API call, as CUPTI shows it. `params` points at the cuXxx_params structure of
// generated_cuda_meta.h; `cbid` is the CUpti_driver_api_trace_cbid. Only calls listed in
// driver/api_calls.def report.
struct ApiCall {
  uint32_t cbid;
  const char* name;  // "cuLaunchKernel"
  const void* params;
  CUresult result;             // valid at exit only
  CUcontext context;           // current context, may be null
  uint32_t context_id;         // unique per process, from 1
  const char* symbol;          // mangled kernel name for launches, else null
  uint32_t correlation_id;     // unique per API call, from 1; the same at enter and exit
  uint64_t* correlation_data;  // one word owned by the call, for the tool
};

// A kernel about to run or just run. Not sent while a stream is being captured: that makes a node
// instead.
struct KernelRun {
  const char* symbol;
  CUfunction function;
  CUcontext context;
  uint32_t device_id, context_id, stream_id;
  uint32_t module_id;       // as in ModuleInfo
  uint32_t correlation_id;  // of the launching call; all nodes of a graph launch share it
  uint32_t graph_id;        // 0 outside a graph; else the executable graph's id
  uint64_t graph_node_id;   // 0 outside a graph
  uint32_t grid[3], block[3], cluster[3];  // cluster is {0,0,0} when not given
  uint32_t dynamic_shared_bytes, registers_per_thread;
  uint8_t cooperative;
  uint8_t green;      // in a stream of a green context
  int64_t grid_id;    // unique per run
  uint32_t sm_count;  // of the device
  // Filled in after the run:
  uint64_t start_ns, end_ns;  // device timeline, comparable with timestamp()
  uint64_t cycles;
  Counts counts;
};

// A copy, or a fill (then `kind` is CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN).
struct MemoryCopy {
  CUcontext context;
  uint32_t device_id, context_id, stream_id, correlation_id;
  uint32_t from_device_id, to_device_id;  // between two devices; else that of the stream
  uint32_t value;                         // of a fill
  uint8_t kind;                           // CUpti_ActivityMemcpyKind
  uint8_t from, to;                       // CUpti_ActivityMemoryKind; of a fill only `to`
  uint64_t bytes, start_ns, end_ns;
};

struct ModuleInfo {
  uint32_t module_id;  // unique per process
  const void* image;   // a cubin (driver/cubin_image.h), valid during the call
  size_t image_bytes;
  size_t kernels;  // in it
};

enum class GraphEvent : uint32_t {
  kCreated,
  kDestroying,
  kCloned,
  kNodeCreated,
  kNodeCloned,
  kNodeDestroying,
  kExecCreated,
  kExecDestroying
};
struct GraphInfo {
  CUgraph graph, original_graph;
  CUgraphNode node, original_node;
  CUgraphNodeType node_type;
  CUgraphExec exec;
};

// CUPTI's side. Called on the thread that makes the API call; any pointer may be null. `self` comes
// first.
struct Observer {
  void* self;
  void (*api_enter)(void* self, ApiCall*);
  void (*api_exit)(void* self, ApiCall*);
  void (*kernel_begin)(void* self, const KernelRun*);
  void (*kernel_end)(void* self, const KernelRun*);
  void (*memory_copy)(void* self, const MemoryCopy*);
  void (*context_created)(void* self, CUcontext, uint32_t context_id, uint32_t device_id);
  void (*context_destroying)(void* self, CUcontext, uint32_t context_id, uint32_t device_id);
  void (*stream_created)(void* self, CUcontext, CUstream, uint32_t stream_id);
  void (*stream_destroying)(void* self, CUcontext, CUstream, uint32_t stream_id);
  void (*module_loaded)(void* self, CUcontext, const ModuleInfo*);
  void (*module_unloading)(void* self, CUcontext, const ModuleInfo*);
  void (*graph)(void* self, GraphEvent, const GraphInfo*);
  void (*synchronized)(void* self, CUcontext,
                       CUstream);  // after a successful synchronize call; stream null: context
};

// What a profiler session asks of a context. Aligned so that it is read and written in one piece.
struct alignas(uint32_t) Session {
  uint8_t open;                // 0: there is none
  uint8_t instrumented;        // the kernels' code is patched
  uint8_t conditionals_crash;  // graphs with conditional nodes end the process
};

// The driver's side.
struct Driver {
  uint32_t abi_version;  // kAbiVersion
  void (*set_observer)(
      const Observer*);  // null removes it; returns when no call is inside the old one
  // A profiler session: the context is synchronised after every launch, so that what is captured
  // meanwhile is invalid.
  void (*set_session)(CUcontext, const Session&);
  uint64_t (*timestamp_ns)();  // the clock of KernelRun::start_ns
  void (*spend_ns)(uint64_t);  // moves it: what CUPTI takes of the host's time
  int (*driver_version)();     // 12080
  int (*device_count)();
  const char* (*chip_name)(int device);  // "GH100"
  CUcontext (*current_context)();        // of the calling thread; null: it has none
  uint32_t (*context_id)(CUcontext);     // 0 when unknown
  uint32_t (*device_of_context)(CUcontext);
  uint32_t (*stream_id)(CUcontext, CUstream);
  uint64_t (*graph_node_id)(CUgraphNode);
  // For what CUPTI does to a context that synchronises it: where stream capture forbids that, the
  // captures are invalidated and the driver's error comes back.
  CUresult (*synchronize_for_tool)(CUcontext);
};
inline constexpr uint32_t kAbiVersion = 10;

}  // namespace simgpu
