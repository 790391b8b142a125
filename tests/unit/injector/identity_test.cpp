// Which kernel a launch is of, by what CUPTI shows of modules and calls. The images are nvcc's: two
// have a kernel of one name with other code (triton_poi_fused_mul_0), and one whose code is equal
// (the_same).
#include <collector/identity/cubin.h>
#include <injector/process/this_thread.h>
#include <injector/process/thread_context.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "catch.h"
#include "unit/injector/played_gpu.h"

using namespace flopinj;
using test::PlayedGpu;

namespace {

const std::string kFused = "triton_poi_fused_mul_0", kSame = "the_same";

std::string image_of(const std::string& name) {
  std::ifstream file(std::string(FLOPINJ_TEST_CUBINS) + "/" + name + ".cubin", std::ios::binary);
  REQUIRE(file);
  return std::string(std::istreambuf_iterator<char>(file), {});
}
const std::string& two() {
  static const std::string image = image_of("same_name_2_sm80");
  return image;
}
const std::string& three() {
  static const std::string image = image_of("same_name_3_sm80");
  return image;
}
uint64_t code_of(const std::string& image, const std::string& kernel) {
  uint64_t code = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(image.data());
  read_cubin({bytes, image.size()}, [&](const CubinFunction& f) {
    if (f.name == kernel) code = f.code_hash;
  });
  return code;
}

template <class Handle>
Handle handle(uintptr_t number) {
  return reinterpret_cast<Handle>(number << 8);
}
CUfunction cast(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

// Calls of the program. A number is a handle's; what is loaded inside of a call is its last
// argument.
struct Loading {
  explicit Loading(const PlayedGpu::Recorded& recorded = {}) : gpu(recorded) {
    REQUIRE(gpu.enable());
  }

  template <class Parameters>
  void make(CUpti_CallbackId id, const Parameters& parameters, const char* symbol = nullptr,
            const std::string* loaded = nullptr) {
    const auto call = gpu.call(id, parameters, symbol);
    gpu.enter(call);
    if (symbol != nullptr) gpu.run();
    if (loaded != nullptr) gpu.module(CUPTI_CBID_RESOURCE_MODULE_LOADED, ++images, *loaded);
    gpu.exit(call);
  }
  CUmodule load(uintptr_t number, const std::string& image) {
    auto module = handle<CUmodule>(number);
    make(CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData, cuModuleLoadData_params{&module, nullptr},
         nullptr, &image);
    return module;
  }
  CUlibrary load_library(uintptr_t number) {
    auto library = handle<CUlibrary>(number);
    cuLibraryLoadData_params parameters{};
    parameters.library = &library;
    make(CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData, parameters);
    return library;
  }
  CUfunction function_in(CUmodule module, const std::string& name, uintptr_t number) {
    auto function = handle<CUfunction>(number);
    const cuModuleGetFunction_params parameters{&function, module, name.c_str()};
    make(CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction, parameters);
    return function;
  }
  CUkernel kernel_in(CUlibrary library, const std::string& name, uintptr_t number) {
    auto kernel = handle<CUkernel>(number);
    const cuLibraryGetKernel_params parameters{&kernel, library, name.c_str()};
    make(CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel, parameters);
    return kernel;
  }
  // The signature that its launch is counted with.
  const Signature& launch(CUfunction function, const std::string& symbol,
                          const std::string* loaded = nullptr, unsigned threads = 32) {
    const cuLaunchKernel_params parameters{function, 1, 1, 1, threads, 1, 1, 0, nullptr, {}, {}};
    make(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, parameters, symbol.c_str(), loaded);
    const RecursionGuard guard;
    const Signature* const made = thread_context(guard)->launch.signature;
    REQUIRE(made != nullptr);
    return *made;
  }

  PlayedGpu gpu;
  uint32_t images = 0;
};

}  // namespace

TEST_CASE("kernels of one name in several modules are each what its own module's code is") {
  Loading program;
  const CUmodule first = program.load(1, two()), second = program.load(2, three());
  const CUfunction a = program.function_in(first, kFused, 3);
  const CUfunction b = program.function_in(second, kFused, 4);
  for (int i = 0; i < 2; ++i) {
    CHECK(program.launch(a, kFused).function->info.code_hash == code_of(two(), kFused));
    CHECK(program.launch(b, kFused).function->info.code_hash == code_of(three(), kFused));
  }
  const FunctionInfo& info = program.launch(a, kFused).function->info;
  CHECK(info.parameters_known);
  CHECK(info.registers_per_thread != 0);
}

TEST_CASE("a handle that nobody gave is the kernel of its name, where all that are loaded agree") {
  Loading program;
  program.load(1, two());
  program.load(2, three());
  const Signature& same = program.launch(handle<CUfunction>(5), kSame);
  CHECK(same.function->info.code_hash == code_of(two(), kSame));
  CHECK(same.parameter_class != ParameterClass::kMerged);
}

TEST_CASE("a handle that nobody gave and that is of one of several kernels is read as varying") {
  Loading program;
  program.load(1, two());
  program.load(2, three());
  const Signature& made = program.launch(handle<CUfunction>(5), kFused);
  CHECK(made.parameter_class == ParameterClass::kMerged);
  CHECK(made.function->info.code_hash == 0);
  CHECK(made.function->info.several);
  CHECK(made.function->info.registers_per_thread != 0);
  CHECK_FALSE(made.function->info.instructions.known);
  CHECK(&program.launch(handle<CUfunction>(6), kFused) == &made);
}

TEST_CASE("a module that is loaded where another one was is another module") {
  Loading program;
  program.load(1, two());
  CUfunction fused = program.function_in(handle<CUmodule>(1), kFused, 3);
  CHECK(program.launch(fused, kFused).function->info.code_hash == code_of(two(), kFused));
  program.gpu.module(CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, 1, two());
  program.load(1, three());
  fused = program.function_in(handle<CUmodule>(1), kFused, 3);
  CHECK(program.launch(fused, kFused).function->info.code_hash == code_of(three(), kFused));
}

TEST_CASE("a kernel whose launch loads its module has its code from that launch on") {
  Loading program;
  const CUlibrary first = program.load_library(1), second = program.load_library(2);
  const CUfunction a = cast(program.kernel_in(first, kFused, 3));
  const CUfunction b = cast(program.kernel_in(second, kFused, 4));
  CHECK(program.launch(a, kFused, &two()).function->info.code_hash == code_of(two(), kFused));
  CHECK(program.launch(b, kFused, &three()).function->info.code_hash == code_of(three(), kFused));
  CHECK(program.launch(a, kFused).function->info.code_hash == code_of(two(), kFused));
  // Others of these libraries are loaded now.
  const CUfunction same = cast(program.kernel_in(second, kSame, 5));
  CHECK(program.launch(same, kSame).function->info.code_hash == code_of(three(), kSame));
}

TEST_CASE("a handle that nobody gave has the code that its own launch loads") {
  Loading program;
  const auto a = handle<CUfunction>(3), b = handle<CUfunction>(4);
  CHECK(program.launch(a, kFused, &two()).function->info.code_hash == code_of(two(), kFused));
  CHECK(program.launch(b, kFused, &three()).function->info.code_hash == code_of(three(), kFused));
  CHECK(program.launch(b, kFused).function->info.code_hash == code_of(three(), kFused));
  CHECK(program.launch(a, kFused).function->info.code_hash == code_of(two(), kFused));
}

TEST_CASE("a launch that loads its kernel is not said to have no room for instrumented code") {
  const auto is_said = [](unsigned threads) {
    Loading program({.measured = true});
    const CUfunction fused = cast(program.kernel_in(program.load_library(1), kFused, 3));
    program.launch(fused, kFused, &two(), threads);
    program.gpu.end_window();  // the one that the first launch was in
    for (int i = 0; i < 3; ++i) program.launch(fused, kFused, nullptr, threads);
    REQUIRE(program.gpu.measured > 0);
    return program.gpu.trace().find("counters.registers") != std::string::npos;
  };
  CHECK_FALSE(is_said(512));
  CHECK(is_said(1'024));  // it has none
}

TEST_CASE("the function of a library's kernel is the kernel, whichever call loads the module") {
  Loading program;
  program.load(1, two());
  const CUkernel kernel = program.kernel_in(program.load_library(2), kFused, 3);
  auto function = handle<CUfunction>(4);
  program.make(CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction,
               cuKernelGetFunction_params{&function, kernel}, nullptr, &three());
  for (const CUfunction of : {function, cast(kernel)})
    CHECK(program.launch(of, kFused).function->info.code_hash == code_of(three(), kFused));
}

TEST_CASE("the module of a library has the library's code") {
  Loading program;
  program.load(1, two());
  const CUlibrary library = program.load_library(2);
  auto module = handle<CUmodule>(6);
  program.make(CUPTI_DRIVER_TRACE_CBID_cuLibraryGetModule,
               cuLibraryGetModule_params{&module, library}, nullptr, &three());
  const CUfunction by_module = program.function_in(module, kFused, 3);
  const CUfunction by_library = cast(program.kernel_in(library, kFused, 4));
  for (const CUfunction of : {by_module, by_library})
    CHECK(program.launch(of, kFused).function->info.code_hash == code_of(three(), kFused));
}

TEST_CASE("a node that is made by hand has the name that the program was told of its kernel") {
  Loading program;
  const CUmodule module = program.load(1, two());
  CUfunction functions[] = {handle<CUfunction>(3)};
  program.make(CUPTI_DRIVER_TRACE_CBID_cuModuleEnumerateFunctions,
               cuModuleEnumerateFunctions_params{functions, 1, module});
  const auto add_node = [&] {
    auto node = handle<CUgraphNode>(7);
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = functions[0];
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
    kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    const cuGraphAddKernelNode_v2_params parameters{&node, handle<CUgraph>(8), nullptr, 0, &kernel};
    program.make(CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode_v2, parameters);
    return program.gpu.collector.signature(SignatureId{1});
  };
  CHECK(add_node() == nullptr);
  const char* name = kFused.c_str();
  program.make(CUPTI_DRIVER_TRACE_CBID_cuFuncGetName, cuFuncGetName_params{&name, functions[0]});
  const Signature* const made = add_node();
  REQUIRE(made != nullptr);
  CHECK(made->function->info.code_hash == code_of(two(), kFused));
}

TEST_CASE("of a kernel whose code was not shown name and shape are all that is known") {
  Loading program;
  const FunctionInfo& info = program.launch(handle<CUfunction>(3), kFused).function->info;
  CHECK(info.code_hash == 0);
  CHECK(info.registers_per_thread == 0);
  CHECK_FALSE(info.parameters_known);
  CHECK_FALSE(info.several);
}
