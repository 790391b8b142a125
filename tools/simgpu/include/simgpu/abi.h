// The binary interface between a kernel module (a .simgpu shared object) and the simulated driver.
//
// A module exports one C function, simgpu_module_v1(), that returns its ModuleTable. The driver
// runs a kernel by handing its entry points an Execution: who the thread is, where shared memory
// lies, and the counters to add to. Everything here is plain data: module and driver may be built
// by different compilers with different runtimes.
#pragma once
#include <simgpu/counts.h>

#include <cstddef>
#include <cstdint>

namespace simgpu {

inline constexpr uint32_t kModuleAbiVersion = 3;
inline constexpr char kModuleFunction[] = "simgpu_module_v1";

struct Dim3 {
  uint32_t x, y, z;
};

// Which 32-byte sectors of one 2 KiB chunk of device memory the launch `launch` has touched.
struct SectorChunk {
  uint64_t launch;
  uint64_t read, written;  // one bit per sector
};

// The ideal cache of a launch: a chunk for every 2 KiB of the device's memory. Addresses outside
// (shared memory, the stack, host memory) are not DRAM and are not counted.
struct SectorMap {
  uint64_t base, bytes;
  SectorChunk* chunks;
  uint64_t launch;  // unique per launch: a chunk that names another launch is empty
};

inline constexpr uint32_t kSectorBytes = 32;
inline constexpr uint32_t kChunkShift = 11;  // log2(64 sectors)
inline constexpr uint64_t kChunkSectors = 64;

// One operating-system thread running the threads of one launch, one after the other. The driver
// owns it; it is not shared between operating-system threads.
struct Execution {
  Counts counts;
  Dim3 thread, block, block_dim, grid_dim;
  std::byte* shared;  // dynamic shared memory of the running block, 256-byte aligned
  uint64_t shared_bytes;
  SectorMap sectors;
  void (*sync)(Execution*);                                // barrier of the block
  void (*pause)(Execution*);                               // a moment for other work
  void (*set_condition)(uint64_t handle, uint32_t value);  // of a graph's conditional nodes
};

struct ParamInfo {
  uint32_t offset,
      bytes;  // in the packed parameter buffer, by CUDA's rules: natural alignment, in order
};

struct KernelEntry {
  const char* name;
  const ParamInfo* params;
  uint32_t param_count;
  uint32_t param_bytes;  // end of the last parameter
  uint32_t uses_sync;    // exported with GPU_EXPORT_SYNC: needs run_thread on one stack per thread
  void (*run_thread)(Execution*, const std::byte* params);  // the one thread execution->thread
  void (*run_block)(Execution*,
                    const std::byte* params);  // every thread of execution->block in turn
};

// Kernels of one source file; a module of several files is a list of these.
struct KernelGroup {
  const KernelEntry* kernels;
  size_t count;
  const KernelGroup* next;
};

struct ModuleTable {
  uint32_t abi_version;  // kModuleAbiVersion
  const KernelGroup* groups;
};

}  // namespace simgpu
