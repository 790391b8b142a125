// The images that simgpu shows of modules say what its driver says, and what NVIDIA's assembler
// says of the same text.
#include <collector/identity/cubin.h>
#include <cuda.h>
#include <simgpu/hooks.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.h"

namespace {

namespace fs = std::filesystem;

// Of a kernel, what is not its code.
struct Facts {
  flopinj::ParameterLayout parameters;
  uint32_t registers = 0, shared_bytes = 0;
  bool operator==(const Facts&) const = default;
};
using Kernels = std::map<std::string, Facts>;

std::ostream& operator<<(std::ostream& out, const Kernels& kernels) {
  for (const auto& [name, facts] : kernels) {
    out << name << ": " << facts.registers << " registers, " << facts.shared_bytes << " shared,";
    for (const auto& [offset, size] : facts.parameters) out << ' ' << offset << '+' << size;
    out << '\n';
  }
  return out;
}

void check(CUresult result) {
  if (result != CUDA_SUCCESS) throw std::runtime_error("error " + std::to_string(result));
}

Kernels read(std::span<const unsigned char> image) {
  Kernels kernels;
  const bool is_cubin = flopinj::read_cubin(image, [&](const flopinj::CubinFunction& f) {
    INFO(f.name);
    CHECK(f.parameters_known);
    kernels[std::string(f.name)] = {f.parameters, f.registers_per_thread, f.static_shared_bytes};
  });
  REQUIRE(is_cubin);
  return kernels;
}

Kernels read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  const std::vector<unsigned char> bytes(std::istreambuf_iterator<char>(file), {});
  return read(bytes);
}

// What the driver answers, and what it shows to tools.
class Gpu {
 public:
  Gpu() {
    check(cuInit(0));
    check(cuCtxCreate(&context_, nullptr, 0, 0));
    const void* table = nullptr;
    check(cuGetExportTable(&table, &simgpu::kHooksUuid));
    driver_ = static_cast<const simgpu::Driver*>(table);
    observer_.self = this;
    observer_.module_loaded = [](void* self, CUcontext, const simgpu::ModuleInfo* m) {
      static_cast<Gpu*>(self)->shown_ =
          read({static_cast<const unsigned char*>(m->image), m->image_bytes});
    };
    driver_->set_observer(&observer_);
  }
  ~Gpu() {
    driver_->set_observer(nullptr);
    cuCtxDestroy(context_);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void load(const fs::path& ptx) {
    CUmodule module = nullptr;
    check(cuModuleLoad(&module, ptx.c_str()));
    unsigned count = 0;
    check(cuModuleGetFunctionCount(&count, module));
    std::vector<CUfunction> functions(count);
    check(cuModuleEnumerateFunctions(functions.data(), count, module));
    answered_.clear();
    for (const CUfunction function : functions) ask(function);
    check(cuModuleUnload(module));
  }
  const Kernels& shown() const { return shown_; }
  const Kernels& answered() const { return answered_; }

 private:
  void ask(CUfunction function) {
    const char* name = nullptr;
    check(cuFuncGetName(&name, function));
    Facts& facts = answered_[name];
    size_t offset = 0, size = 0;
    for (size_t i = 0; cuFuncGetParamInfo(function, i, &offset, &size) == CUDA_SUCCESS; ++i)
      facts.parameters.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(size)});
    const auto attribute = [function](CUfunction_attribute which) {
      int value = 0;
      check(cuFuncGetAttribute(&value, which, function));
      return static_cast<uint32_t>(value);
    };
    facts.registers = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
    facts.shared_bytes = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  }

  CUcontext context_ = nullptr;
  const simgpu::Driver* driver_ = nullptr;
  simgpu::Observer observer_{};
  Kernels shown_, answered_;
};

std::vector<fs::path> committed_ptx() {
  std::vector<fs::path> found;
  for (const char* folder : {"tests/integration", "tests/unit/simgpu", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE) / folder))
      if (entry.path().extension() == ".ptx") found.push_back(entry.path());
  return found;
}

}  // namespace

TEST_CASE("an image says of every kernel what the driver answers", "[driver]") {
  Gpu gpu;
  const auto texts = committed_ptx();
  REQUIRE(texts.size() >= 10);
  for (const fs::path& text : texts) {
    INFO(text.string());
    gpu.load(text);
    CHECK_FALSE(gpu.shown().empty());
    CHECK(gpu.shown() == gpu.answered());
  }
}

TEST_CASE("an image says of every kernel what NVIDIA's assembler writes") {
  const fs::path folder = fs::path(SOURCE) / "tests/data/cubins";
  Gpu gpu;
  gpu.load(folder / "shared.ptx");
  CHECK(gpu.shown() == read_file(folder / "shared_sm90.cubin"));
}
