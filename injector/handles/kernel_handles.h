// What is known of handles of kernels, from the calls that gave them to the program: the name, and
// the module or library that the kernel is of. A handle is never given to the driver.
//
// Threads: any.
#pragma once
#include <collector/base/mutex.h>
#include <cuda.h>
#include <injector/vendor/module_calls.h>

#include <cstddef>
#include <string>
#include <unordered_map>

namespace flopinj {

class KernelHandles {
 public:
  struct Given {
    const void* owner = nullptr;  // a CUmodule or a CUlibrary; null: no call said it
    std::string name;             // mangled; empty: no call said it
  };

  // False when the table was full, and began anew with these.
  bool learn(const ModuleCall&);
  Given find(CUfunction) const;

 private:
  static constexpr size_t kMost = 1U << 18;

  mutable Mutex mutex_;
  std::unordered_map<CUfunction, Given> given_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
