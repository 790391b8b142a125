// Makes a context current for a scope, on a thread that may have another one, or none.
#pragma once
#include <injector/vendor/cuda_api.h>

namespace flopinj {

class WithContext {
 public:
  WithContext(const CudaApi& cuda, CUcontext context) : cuda_(cuda) {
    pushed_ = cuda.CtxPushCurrent != nullptr && cuda.CtxPushCurrent(context) == CUDA_SUCCESS;
  }
  ~WithContext() {
    CUcontext popped = nullptr;
    if (pushed_ && cuda_.CtxPopCurrent != nullptr) cuda_.CtxPopCurrent(&popped);
  }
  WithContext(const WithContext&) = delete;
  WithContext& operator=(const WithContext&) = delete;
  // False: the driver is already gone.
  explicit operator bool() const { return pushed_; }

 private:
  const CudaApi& cuda_;
  bool pushed_;
};

}  // namespace flopinj
