// The code of loaded modules: what CUPTI shows of each one when the driver loads it (cubin.h).
//
// CUPTI shows the image and a number of its own, but not the program's handle; and the image is
// readable during that callback only. So each image is read there and then, and bound to its owner,
// a handle, by the call that it was loaded in:
//
//   cuModuleLoad*, cuLibraryLoad*      EXIT  the module or library that the call made
//   a call that gives or asks for      EXIT  the module or library that they are of
//   handles
//   a launch, a node made by hand      EXIT  the module or library of its kernel; the kernel's
//                                            handle where no call has told that
//
// A kernel without an owner, or whose owner has no image yet, is looked for by its name in all
// images. Where several have it and do not agree its code is not known, and nothing that is said of
// it holds for one of them only.
//
// What it costs the program's thread, once per module: reading tables, hashing at most
// kMaxHashedBytes of code, and looking at kMaxReadBytes of it by instruction (docs/safety.md).
// Nothing of the image is kept but some 70 bytes per function, and these are bounded too.
#pragma once
#include <collector/base/mutex.h>
#include <collector/identity/launch.h>
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
  struct Code : KernelCode {
    bool guessed = false;  // the kernel is known by its name alone
  };

  explicit Modules(Edge& edge) : edge_(edge) {}

  // From CUPTI, on any thread, also inside our own calls.
  void loaded(ThreadContext*, const CUpti_ModuleResourceData&);
  void unloading(const CUpti_ModuleResourceData&);

  // After a call that may load modules: the image it loaded on this thread, if it was one, belongs
  // to `owner`, which may be null. False: there is none. `loaded`: the owner is new.
  bool bind(ThreadContext&, const void* owner, bool loaded = false);
  // The program was given this module for the library: it has the library's images.
  void is_of(const void* module, const void* library);

  // Of the kernel of that name and handle. `owner` may be null. Nothing where no image has it.
  std::optional<Code> find(const void* owner, CUfunction, std::string_view kernel) const;

 private:
  static constexpr size_t kMaxFunctions = 1U << 19;  // of all images together
  struct Function {
    uint64_t name_hash, code_hash;
    uint32_t first_parameter;  // in the image's `parameters`
    uint32_t registers, shared_bytes;
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
  static void add(std::optional<Code>& found, const std::optional<KernelCode>&);
  static std::optional<KernelCode> code_in(const Image&, uint64_t name_hash);
  static Image read(const CUpti_ModuleResourceData&, bool& is_cubin, bool& cut);

  Edge& edge_;
  mutable Mutex mutex_;
  std::unordered_map<uint32_t, Image> images_ FLOPINJ_GUARDED_BY(mutex_);  // by CUPTI's id
  // A library has one for each context that it was loaded in.
  std::unordered_map<const void*, std::vector<uint32_t>> images_of_ FLOPINJ_GUARDED_BY(mutex_);
  size_t functions_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
