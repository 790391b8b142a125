// NVTX ranges of the calling thread, which a caller can leave out.
#pragma once
#include <nvtx3/nvToolsExt.h>

#include <string>

namespace trainer {

enum class Ranges {
  kOff,
  kOn,
  kPyTorch,  // the same, and operators as PyTorch's emit_nvtx names them
};

// Those of a model's backward pass: autograd's nodes have ranges, and layers have none.
inline Ranges of_backward(Ranges ranges) {
  return ranges == Ranges::kPyTorch ? Ranges::kOff : ranges;
}

// Pushes a range named `name` on this thread and pops it at the end of the scope.
class NvtxRange {
 public:
  NvtxRange(Ranges ranges, const char* name) : on_(ranges != Ranges::kOff) {
    if (on_) nvtxRangePushA(name);
  }
  NvtxRange(Ranges ranges, const std::string& name) : NvtxRange(ranges, name.c_str()) {}
  ~NvtxRange() {
    if (on_) nvtxRangePop();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  bool on_;
};

}  // namespace trainer
