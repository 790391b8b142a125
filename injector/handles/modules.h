// The code of loaded modules: what CUPTI shows of each one when the driver loads it (cubin.h).
//
// CUPTI shows the image and a number of its own, but not the program's handle; and the image is
// readable during that callback only. So each image is read there and then, and bound to the handle
// by the call that it was loaded in:
//
//   cuModuleLoad* and   EXIT  an image reported on this thread since ENTER belongs to the module
//   the like                  that the call was about
//   a launch, or our own questions about its kernel (modules of libraries are loaded at first use)
//                  after  they belong to the module of that function
//
// An image that came in no such call is found by the kernel's name, if all images that have one of
// that name agree; else its code is not known. So it is, too, for modules that were there before
// us.
//
// What it costs the program's thread, once per module: reading tables, hashing at most
// kMaxHashedBytes of code, and looking at kMaxReadBytes of it by instruction (docs/performance.md).
// Nothing of the image is kept but some 70 bytes per function, and these are bounded too.
#pragma once
#include <collector/identity/launch.h>
#include <collector/identity/mutex.h>
#include <cuda.h>
#include <cupti.h>
#include <injector/process/edge.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace flopinj {

struct ThreadContext;

class Modules {
 public:
  // What is known of one kernel's code.
  struct Code {
    uint64_t hash = 0;
    bool parameters_known = false, launches_kernels = false, launches_graphs = false;
    ParameterLayout parameters;
    InstructionMix instructions;
    bool operator==(const Code&) const = default;
  };

  explicit Modules(Edge& edge) : edge_(edge) {}

  // From CUPTI, on any thread, also inside our own calls.
  void loaded(ThreadContext*, const CUpti_ModuleResourceData&);
  void unloading(const CUpti_ModuleResourceData&);

  // After a call that may load modules: the image it loaded on this thread, if it was one, belongs
  // to `module`.
  void bind(ThreadContext&, CUmodule module);

  // Nothing where no image, or images that disagree, have such a kernel. `module` may be null.
  std::optional<Code> find(CUmodule module, std::string_view kernel) const;

 private:
  static constexpr size_t kMaxFunctions = 1U << 19;  // of all images together
  struct Function {
    uint64_t name_hash, code_hash;
    uint32_t first_parameter;  // in the image's `parameters`
    uint16_t parameters;
    bool parameters_known, launches_kernels, launches_graphs;
    bool code_read, moves_registers;
    uint8_t operations;        // that `instructions` has of it
    uint32_t first_operation;  // there
  };
  struct Operation {
    SassOperation operation;
    InstructionCounts counts;
  };
  struct Image {
    std::vector<Function> functions;  // sorted by name_hash
    std::vector<ParameterSlot> parameters;
    std::vector<Operation> instructions;
    bool bound = false;
  };
  static std::optional<Code> code_in(const Image&, uint64_t name_hash);
  static Image read(const CUpti_ModuleResourceData&, bool& is_cubin, bool& cut);

  Edge& edge_;
  mutable Mutex mutex_;
  std::unordered_map<uint32_t, Image> images_ FLOPINJ_GUARDED_BY(mutex_);  // by CUPTI's id
  std::unordered_map<CUmodule, uint32_t> image_of_ FLOPINJ_GUARDED_BY(mutex_);
  size_t functions_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
