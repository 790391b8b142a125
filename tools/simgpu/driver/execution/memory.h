// Device and pinned host memory, copies and fills.
#pragma once
#include "driver/execution/stream.h"

namespace simgpu {

CUresult allocate_device(Device& device, uint64_t bytes, CUdeviceptr* address,
                         bool managed = false);
CUresult free_device(CUdeviceptr address);

struct HostBlock {
  uint64_t address = 0, bytes = 0;
  unsigned int flags = 0;
  bool registered = false;  // cuMemHostRegister: the program's own memory
};
CUresult allocate_host(uint64_t bytes, unsigned int flags, void** address);
CUresult register_host(void* address, uint64_t bytes, unsigned int flags);
CUresult free_host(void* address, bool registered);
bool find_host(uint64_t address, HostBlock& block);

// A copy of `rows` rows of `width` bytes; one row for the one-dimensional calls.
struct CopyWork {
  uint64_t from = 0, to = 0;
  uint64_t width = 0, rows = 1, slices = 1;
  uint64_t from_pitch = 0, to_pitch = 0;              // bytes between rows
  uint64_t from_slice_pitch = 0, to_slice_pitch = 0;  // bytes between slices
  bool from_device = false, to_device = false;  // as the caller declared or as the address says

  uint64_t bytes() const { return width * rows * slices; }
};
// Fills in which sides are device memory, by address.
CopyWork linear_copy(uint64_t to, uint64_t from, uint64_t bytes);
// CUDA_ERROR_INVALID_VALUE when a device side does not lie within an allocation.
CUresult check_copy(const CopyWork& work);
CUresult run_copy(Stream& stream, const CopyWork& work);

struct FillWork {
  uint64_t to = 0;
  uint32_t value = 0, element_bytes = 1;    // 1, 2 or 4
  uint64_t width = 0, rows = 1, pitch = 0;  // width in elements
};
CUresult check_fill(const FillWork& work);
CUresult run_fill(Stream& stream, const FillWork& work);

}  // namespace simgpu
