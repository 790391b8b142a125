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
