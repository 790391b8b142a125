// What calls of the driver say of modules, libraries and handles of kernels.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstring>

namespace flopinj {

// The memory is the driver's, or the program's: valid until the EXIT callback of the call returns.
// A kernel's handle is a CUfunction or a CUkernel: launches and nodes of graphs take both.
struct ModuleCall {
  // The CUmodule or CUlibrary that the call loaded, asked for, or gave the handles from. Null: it
  // does not say.
  const void* owner = nullptr;
  bool loaded = false;          // by this call
  CUlibrary library = nullptr;  // whose module in this context the owner is
  const void* handles = nullptr;
  size_t count = 0;            // of the handles
  const char* name = nullptr;  // of the one handle; null: not said
  CUkernel kernel = nullptr;   // the handle is its function in this context

  CUfunction handle(size_t i) const {
    CUfunction handle = nullptr;
    std::memcpy(&handle, static_cast<const char*>(handles) + i * sizeof handle, sizeof handle);
    return handle;
  }
};

}  // namespace flopinj
