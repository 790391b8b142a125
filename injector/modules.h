// The code of loaded modules: what CUPTI shows of each one when the driver loads it (cubin.h).
//
// CUPTI shows the image and a number of its own, but not the program's handle; and the image is
// readable during that callback only. So each image is read there and then, and bound to the handle
// by the call that it was loaded in:
//
//   cuModuleLoad* and   EXIT  an image told of on this thread since ENTER belongs to the module
//   the like                  that the call was about
//   a launch, or our own questions about its kernel (modules of libraries are loaded at first use)
//                  after  they belong to the module of that function
//
// An image that came in no such call is found by the kernel's name, if all images that have one of
// that name agree; else its code is not known. So it is, too, for modules that were there before
// us.
//
// What it costs the program's thread, once per module: reading tables, and hashing at most
// kMaxHashedBytes of code (docs/performance.md). Nothing of the image is kept but some 40 bytes per
// function, and these are bounded too.
#pragma once
#include <collector/model.h>
#include <cuda.h>
#include <cupti.h>
#include <injector/edge.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace flopinj {

struct ThreadCache;

// The driver's functions during which modules are loaded, as data: where the result is.
struct ModuleFunction {
  uint32_t cbid;
  CUmodule (*module)(const void* parameters);      // null where it gives a function
  CUfunction (*function)(const void* parameters);  // null where it gives a module
};
std::span<const ModuleFunction> module_functions();  // sorted by cbid
const ModuleFunction* find_module_function(uint32_t cbid) noexcept;

class Modules {
 public:
  // What is known of one kernel's code.
  struct Code {
    uint64_t hash = 0;
    bool parameters_known = false, launches_kernels = false, launches_graphs = false;
    ParameterLayout parameters;
    bool operator==(const Code&) const = default;
  };

  explicit Modules(Edge& edge) : edge_(edge) {}

  // From CUPTI, on any thread, also inside our own calls.
  void loaded(ThreadCache*, const CUpti_ModuleResourceData&);
  void unloading(const CUpti_ModuleResourceData&);

  // ENTER of a call that may load modules.
  static void call_enter(ThreadCache&);
  // After it: the image it loaded on this thread, if it was one, belongs to `module`.
  void bind(ThreadCache&, CUmodule module);

  // Nothing where no image, or images that disagree, have such a kernel. `module` may be null.
  std::optional<Code> find(CUmodule module, std::string_view kernel) const;

 private:
  static constexpr size_t kMaxFunctions = 1U << 19;  // of all images together
  struct Function {
    uint64_t name_hash, code_hash;
    uint32_t first_parameter;  // in the image's `parameters`
    uint16_t parameters;
    bool parameters_known, launches_kernels, launches_graphs;
  };
  struct Image {
    std::vector<Function> functions;  // sorted by name_hash
    std::vector<ParameterSlot> parameters;
    bool bound = false;
  };
  static std::optional<Code> code_in(const Image&, uint64_t name_hash);
  static Image read(const CUpti_ModuleResourceData&, bool& is_cubin, bool& cut);

  Edge& edge_;
  mutable std::mutex mutex_;
  std::unordered_map<uint32_t, Image> images_;  // by CUPTI's id
  std::unordered_map<CUmodule, uint32_t> image_of_;
  size_t functions_ = 0;
};

}  // namespace flopinj
