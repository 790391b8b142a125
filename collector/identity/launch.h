// A kernel, a launch of it and its GPU time, as the edge reports them: plain values, no vendor
// types.
#pragma once
#include <collector/identity/sass.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace flopinj {

// Where one kernel parameter lies in the packed parameter buffer, bytes.
struct ParameterSlot {
  uint32_t offset = 0, size = 0;
  bool operator==(const ParameterSlot&) const = default;
};

// A kernel's parameters in order. Also kept as runs of parameters that are read alike, so that the
// launch path decides once per run how to read, not once per parameter.
class ParameterLayout {
 public:
  enum class Kind : uint8_t {
    kFourBytes,
    kOneWord,  // 8 bytes at a multiple of 8: may be a pointer
    kOther,
  };
  struct Run {
    Kind kind;
    uint32_t count;
  };

  ParameterLayout() = default;
  ParameterLayout(std::initializer_list<ParameterSlot> slots) {
    for (const ParameterSlot& slot : slots) push_back(slot);
  }
  void push_back(const ParameterSlot& slot) {
    const Kind kind = kind_of(slot);
    slots_.push_back(slot);
    bytes_ += slot.size;
    if (!runs_.empty() && runs_.back().kind == kind)
      ++runs_.back().count;
    else
      runs_.push_back({kind, 1});
  }
  void clear() { *this = {}; }

  bool empty() const { return slots_.empty(); }
  size_t size() const { return slots_.size(); }
  const ParameterSlot& operator[](size_t i) const { return slots_[i]; }
  auto begin() const { return slots_.begin(); }
  auto end() const { return slots_.end(); }
  const std::vector<Run>& runs() const { return runs_; }
  uint64_t bytes() const { return bytes_; }  // without padding between them
  bool operator==(const ParameterLayout& other) const { return slots_ == other.slots_; }

 private:
  static Kind kind_of(const ParameterSlot& slot) {
    if (slot.size == 4) return Kind::kFourBytes;
    return slot.size == 8 && slot.offset % 8 == 0 ? Kind::kOneWord : Kind::kOther;
  }

  std::vector<ParameterSlot> slots_;
  std::vector<Run> runs_;
  uint64_t bytes_ = 0;
};

// A kernel as its machine code describes it.
struct KernelCode {
  ParameterLayout parameters;
  bool parameters_known = false;
  uint32_t registers_per_thread = 0, static_shared_bytes = 0;  // 0: not known
  uint64_t code_hash = 0;       // of its machine code (cubin.h); 0 where it was not shown to us
  InstructionMix instructions;  // of that code
  bool several = false;         // several kernels of its name are loaded, and their code differs
  // It starts kernels or graphs from the GPU: work that is in no count.
  bool launches_kernels = false, launches_graphs = false;
  bool operator==(const KernelCode&) const = default;
};

struct FunctionInfo : KernelCode {
  std::string name;  // mangled
};

struct LaunchShape {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{0, 0, 0};
  uint32_t dynamic_shared_bytes = 0;
  // Word by word, as they were just written: a comparison by larger pieces would wait until they
  // have left the store buffer.
  bool operator==(const LaunchShape& other) const noexcept {
    uint32_t differ = dynamic_shared_bytes ^ other.dynamic_shared_bytes;
    for (size_t i = 0; i < grid.size(); ++i)
      differ |=
          (grid[i] ^ other.grid[i]) | (block[i] ^ other.block[i]) | (cluster[i] ^ other.cluster[i]);
    return differ == 0;
  }
};

// A launch's kernel parameters in one of CUDA's two forms; both null where there are none.
struct ParameterValues {
  const void* const* pointers = nullptr;  // kernelParams: one pointer per parameter
  const void* packed = nullptr;           // CU_LAUNCH_PARAM_BUFFER_POINTER
  size_t packed_bytes = 0;
};

// GPU time of one kernel, from the activity API.
struct KernelTime {
  uint32_t correlation = 0;
  uint64_t graph_node = 0;  // 0 outside graphs
  uint64_t start_ns = 0, end_ns = 0;
};

}  // namespace flopinj
