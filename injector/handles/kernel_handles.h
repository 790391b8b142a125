// Which handles of kernels are CUfunctions, and which are CUkernels.
//
// A launch takes both (a CUkernel cast to CUfunction), and so does a node of a graph. The calls
// that ask about a function take a CUfunction only, and cuKernelGetFunction a CUkernel only: CUDA
// documents nothing for the other kind, a crash included. So a handle's kind is learned from the
// call that gave the handle to the program. A handle that no such call gave is not asked about.
//
// Threads: any.
#pragma once
#include <collector/identity/mutex.h>
#include <cuda.h>
#include <injector/vendor/module_calls.h>

#include <cstddef>
#include <unordered_map>

namespace flopinj {

class KernelHandles {
 public:
  enum class Kind { kUnknown, kFunction, kKernel };

  // False when the table was full, and began anew with these.
  bool learn(const GivenHandles&);
  Kind kind(CUfunction) const;

 private:
  // A handle that comes back as another one is given again first, so that old ones do no harm.
  static constexpr size_t kMost = 1U << 18;
  void learn(CUfunction, Kind, bool repeated) FLOPINJ_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<CUfunction, Kind> kinds_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
