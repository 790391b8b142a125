#include "driver/execution/launch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <tuple>
#include <utility>

#include "driver/execution/counts_file.h"
#include "driver/execution/memory.h"
#include "driver/execution/patience.h"
#include "driver/execution/timing.h"
#include "driver/graphs/conditional.h"
#include "driver/modules/attributes.h"
#include "driver/observer.h"
#include "ptx/machine.h"

namespace simgpu {
namespace {

constexpr uint32_t kMaxThreadsPerBlock = 1024;
// On all modelled chips: of a block at most, and of a multiprocessor, which gives each warp a
// multiple of 256.
constexpr uint64_t kMostRegisters = 65536;
constexpr uint64_t kRegisterUnit = 256;

CUresult copy_extra(const ptx::Kernel& kernel, void** extra, std::vector<std::byte>& params) {
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      if (extra[1] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      bytes = *static_cast<const size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (bytes < kernel.parameter_bytes || (buffer == nullptr && kernel.parameter_bytes > 0))
    return CUDA_ERROR_INVALID_VALUE;
  if (kernel.parameter_bytes > 0) std::memcpy(params.data(), buffer, kernel.parameter_bytes);
  return CUDA_SUCCESS;
}

CUresult copy_params(const ptx::Kernel& kernel, void** kernel_params, void** extra,
                     std::vector<std::byte>& params) {
  if (kernel_params != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  params.assign(kernel.parameter_bytes, std::byte{0});
  if (extra != nullptr) return copy_extra(kernel, extra, params);
  if (!kernel.parameters.empty() && kernel_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const ptx::Parameter& one : kernel.parameters) {
    const void* const from = *kernel_params++;
    if (from == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(params.data() + one.offset, from, one.bytes);
  }
  return CUDA_SUCCESS;
}

void copy_dim(uint32_t (&to)[3], const Dim3& from) {
  to[0] = from.x;
  to[1] = from.y;
  to[2] = from.z;
}

KernelRun describe(const Stream& stream, const LaunchWork& work, const GraphOrigin& origin,
                   uint64_t number) {
  const Context& context = *stream.context;
  KernelRun run{};
  run.symbol = work.function->symbol;
  run.function = HandleTable<CUfunction, Function>::handle_of(work.function.get());
  run.context = HandleTable<CUcontext, Context>::handle_of(&context);
  run.device_id = static_cast<uint32_t>(context.device->ordinal());
  run.context_id = context.id;
  run.stream_id = stream.id;
  run.module_id = work.function->module_id;
  run.correlation_id = ApiScope::current_correlation_id();
  run.graph_id = origin.graph_id;
  run.graph_node_id = origin.node_id;
  copy_dim(run.grid, work.shape.grid);
  copy_dim(run.block, work.shape.block);
  copy_dim(run.cluster, work.shape.cluster);
  run.dynamic_shared_bytes = work.shape.dynamic_shared_bytes;
  run.registers_per_thread = work.function->code->registers;
  run.cooperative = work.shape.cooperative ? 1 : 0;
  run.green = stream.green != nullptr ? 1 : 0;
  run.grid_id = static_cast<int64_t>(number);
  run.sm_count = context.device->chip().sm_count;
  return run;
}

// The allocation around an address that a kernel uses: of a device, or of pinned host memory.
bool find_allocation(uint64_t address, ptx::Allocation& found) {
  if (Device* const device = Runtime::get().device_of_address(address)) {
    const auto block = device->memory().find(address);
    if (block) found = {block->address, block->address + block->bytes};
    return block.has_value();
  }
  HostBlock block;
  if (!find_host(address, block)) return false;
  found = {block.address, block.address + block.bytes};
  return true;
}

// Gives the device away for a moment, where a kernel waits: for another stream's work, it may be.
void give_way(std::recursive_mutex& engine, const Patience& patience) {
  engine.unlock();
  patience.rest();
  engine.lock();
}

struct Result {
  Counts counts;
  CUresult error = CUDA_SUCCESS;  // otherwise the kernel ended by a fault; one line is on stderr
};

Result execute(Device& device, const LaunchWork& work, uint64_t number) {
  if (Runtime::get().settings().faults.launch_failure == number)
    return {{}, CUDA_ERROR_LAUNCH_FAILED};
  ptx::Launch launch;
  launch.grid = work.shape.grid;
  launch.block = work.shape.block;
  launch.cluster = work.shape.cluster;
  launch.dynamic_shared_bytes = work.shape.dynamic_shared_bytes;
  launch.cooperative = work.shape.cooperative;
  // As cooperative_groups/details/driver_abi.h has it: its size, and the barrier of the grid.
  alignas(8) uint32_t workspace[2] = {sizeof workspace, 0};
  if (launch.cooperative) launch.grid_workspace = reinterpret_cast<uint64_t>(workspace);
  launch.parameters = work.params;
  launch.sectors = device.memory().sectors(number);
  launch.grid_id = number;
  launch.find = [&](uint64_t address, ptx::Allocation& found) {
    if (launch.grid_workspace == 0 || address - launch.grid_workspace >= sizeof workspace)
      return find_allocation(address, found);
    found = {launch.grid_workspace, launch.grid_workspace + sizeof workspace};
    return true;
  };
  Patience patience;
  launch.pause = [&](bool asleep) {
    if (!asleep) patience = {};
    give_way(device.engine(), patience);
  };
  launch.print = [](const std::string& text) { std::fputs(text.c_str(), stdout); };
  Context& context = *work.function->context;
  launch.set_condition = &set_condition;
  launch.allocate = [&](uint64_t bytes) {
    return context.heap.allocate(device, bytes, context.limits[CU_LIMIT_MALLOC_HEAP_SIZE]);
  };
  launch.give_back = [&](uint64_t address) { return context.heap.free(device, address); };
  try {
    return {ptx::run(work.function->module_code->program, *work.function->code, launch),
            CUDA_SUCCESS};
  } catch (const ptx::Fault& fault) {
    complain(fault.what());
    return {{}, fault.result};
  }
}

// Machine code has no fp8 products of a warp on compute capability 9.0 and 10.0: ptxas makes two of
// fp16 of each.
void make_fp8_fp16(const Chip& chip, Counts& counts) {
  if (chip.compute_major != 9 && chip.compute_major != 10) return;
  counts[Count::kTensorFp16] += std::exchange(counts[Count::kTensorFp8], 0);
}

// What a launch may lack once its code is patched: registers, room for all blocks at once, memory.
CUresult instrumented_failure(Device& device, const LaunchWork& work, const Faults& faults) {
  const uint64_t registers = (work.function->code->registers + faults.instrumented_registers) *
                             work.shape.threads_per_block();
  if (faults.instrumented_registers != 0 && registers > kMostRegisters)
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (faults.instrumented_cooperative && work.shape.cooperative)
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return device.memory().free_bytes() >> 20 < faults.instrumented_memory ? CUDA_ERROR_OUT_OF_MEMORY
                                                                         : CUDA_SUCCESS;
}

}  // namespace

CUresult check_shape(const Function& function, const LaunchShape& shape) {
  const auto& [grid, block] = std::tie(shape.grid, shape.block);
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (grid.x > 0x7fffffffU || grid.y > 65535 || grid.z > 65535) return CUDA_ERROR_INVALID_VALUE;
  if (block.x > 1024 || block.y > 1024 || block.z > 64) return CUDA_ERROR_INVALID_VALUE;
  if (shape.threads_per_block() > most_threads(function)) return CUDA_ERROR_INVALID_VALUE;
  if (const ptx::Kernel* const code = function.code;
      code->block[0] != 0 &&
      (block.x != code->block[0] || block.y != code->block[1] || block.z != code->block[2]))
    return CUDA_ERROR_INVALID_VALUE;  // .reqntid
  if (shape.dynamic_shared_bytes > function.max_dynamic_shared.load())
    return CUDA_ERROR_INVALID_VALUE;
  const Chip& chip = function.context->device->chip();
  const Dim3& cluster = shape.cluster;
  if (cluster.x != 0 || cluster.y != 0 || cluster.z != 0) {
    if (chip.compute_major < 9) return CUDA_ERROR_NOT_SUPPORTED;
    if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0) return CUDA_ERROR_INVALID_VALUE;
    if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (uint64_t{cluster.x} * cluster.y * cluster.z > kMaxClusterBlocks)
      return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  if (shape.cooperative) {
    const uint64_t at_once =
        uint64_t{resident_blocks(function, shape.threads_per_block(), shape.dynamic_shared_bytes)} *
        chip.sm_count;
    if (shape.blocks() > at_once) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return CUDA_SUCCESS;
}

uint32_t resident_blocks(const Function& function, uint64_t threads_per_block,
                         uint64_t dynamic_shared_bytes) {
  if (threads_per_block == 0 || threads_per_block > kMaxThreadsPerBlock) return 0;
  const Chip& chip = function.context->device->chip();
  const uint64_t shared_bytes = function.code->shared_bytes + dynamic_shared_bytes;
  const uint64_t warps = (threads_per_block + 31) / 32;
  const uint64_t registers = ptx::align(uint64_t{function.code->registers} * 32, kRegisterUnit);
  uint64_t blocks = std::min<uint64_t>({chip.blocks_per_sm, chip.threads_per_sm / (warps * 32),
                                        kMostRegisters / (warps * registers)});
  if (shared_bytes > 0)
    blocks = std::min(blocks, chip.shared_per_sm / (shared_bytes + reserved_shared_bytes(chip)));
  return static_cast<uint32_t>(blocks);
}

CUresult prepare_launch(const std::shared_ptr<Function>& function, const LaunchShape& shape,
                        void** kernel_params, void** extra, LaunchWork& work) {
  if (const CUresult error = check_shape(*function, shape); error != CUDA_SUCCESS) return error;
  work.function = function;
  work.shape = shape;
  if (shape.cluster.x == 0 && function->code->cluster[0] != 0)
    work.shape.cluster = {function->code->cluster[0], function->code->cluster[1],
                          function->code->cluster[2]};
  return copy_params(*function->code, kernel_params, extra, work.params);
}

CUresult run_launch(Stream& stream, const LaunchWork& work, const GraphOrigin& origin) {
  Runtime& runtime = Runtime::get();
  Device& device = *stream.context->device;
  const uint64_t issued = issued_ns();
  const std::lock_guard engine(device.engine());
  const uint64_t number = runtime.launches.fetch_add(1) + 1;
  // A kernel's fault is its context's, for good.
  if (const CUresult failure = stream.context->failure; failure != CUDA_SUCCESS) return failure;
  if (!launch_runs(work.function->symbol)) return CUDA_SUCCESS;
  const Session session = stream.context->session;
  if (session.instrumented != 0)
    if (const CUresult error = instrumented_failure(device, work, runtime.settings().faults);
        error != CUDA_SUCCESS)
      return error;
  KernelRun run = describe(stream, work, origin, number);
  uint64_t begun_for = 0;
  {
    const ObserverGuard guard;
    if (const Observer* o = guard.get()) {
      begun_for = guard.generation();
      if (o->kernel_begin) o->kernel_begin(o->self, &run);
    }
  }
  Result result = execute(device, work, number);
  make_fp8_fp16(device.chip(), result.counts);
  const uint64_t duration = kernel_duration_ns(device.chip(), result.counts);
  const Interval interval = place(stream, duration, issued);
  run.start_ns = interval.start_ns;
  run.end_ns = interval.end_ns;
  run.cycles = cycles(device.chip(), duration);
  run.counts = result.counts;
  if (result.error == CUDA_SUCCESS) write_counts(run);
  const ObserverGuard guard;
  if (const Observer* o = guard.get();
      o != nullptr && guard.generation() == begun_for && o->kernel_end)
    o->kernel_end(o->self, &run);
  if (result.error == CUDA_SUCCESS) return CUDA_SUCCESS;
  CUresult none = CUDA_SUCCESS;
  stream.context->failure.compare_exchange_strong(none, result.error);
  return CUDA_SUCCESS;  // the next call that waits says it
}

}  // namespace simgpu
