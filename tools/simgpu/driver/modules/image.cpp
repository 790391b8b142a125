#include "driver/modules/image.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>

#include "driver/modules/fatbin.h"
#include "driver/settings.h"
#include "ptx/decode.h"

namespace simgpu {
namespace {

// dlopen compares names with those of loaded libraries before it looks at the file, and file
// descriptors are used again; so every load gets its own spelling of the same path: a number in
// binary, as "/./" and "//".
std::string unique_path(int file) {
  static std::atomic<uint32_t> loads{0};
  std::string path = "/proc/self/fd";
  for (uint32_t n = loads.fetch_add(1) + 1; n != 0; n /= 2) path += n % 2 != 0 ? "/./" : "//";
  return path + "/" + std::to_string(file);
}

ImageResult refuse(CUresult error, const std::string& why) { return {error, nullptr, {}, why}; }

// Whether the process was refused machine code, and whether it has loaded anything.
struct Loads {
  std::atomic<pid_t> refused{0};
  std::atomic<bool> any{false};
  ~Loads() {
    if (refused == getpid() && !any)
      complain("this program carries machine code only: it needs a GPU");
  }
};
Loads& loads() {
  static Loads made;
  return made;
}

// Of a .simgpu module, by its own header; 0 when it is none.
size_t elf_bytes(const void* data, size_t limit) {
  if (limit != 0 && limit < sizeof(Elf64_Ehdr)) return 0;
  Elf64_Ehdr header;
  if (std::memcmp(data, ELFMAG, SELFMAG) != 0) return 0;
  std::memcpy(&header, data, sizeof header);
  if (header.e_type != ET_DYN || header.e_machine == kMachineCuda) return 0;
  // Linkers put the section headers last; segments end before them.
  const uint64_t end = header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_shoff == 0 || end < header.e_shoff) return limit;
  return limit != 0 && end > limit ? 0 : static_cast<size_t>(end);
}

}  // namespace

struct ImageLoader {
  // PTX: what cannot be run is found now, and not at the first launch.
  static ImageResult read(std::string_view from) {
    try {
      ptx::Module text = ptx::parse(from);
      std::vector<std::unique_ptr<std::byte[]>> memory;
      const auto allocate = [&memory](uint64_t size) {
        memory.push_back(std::make_unique<std::byte[]>(size + ptx::kGlobalAlignment));
        return ptx::align(reinterpret_cast<uint64_t>(memory.back().get()), ptx::kGlobalAlignment);
      };
      static_cast<void>(ptx::decode(text, allocate));
      return {CUDA_SUCCESS,
              std::shared_ptr<LoadedImage>(new LoadedImage(std::move(text))),
              std::as_bytes(std::span(from)),
              {}};
    } catch (const ptx::TextError& error) {
      return refuse(CUDA_ERROR_INVALID_PTX, std::string("PTX, ") + error.what());
    } catch (const std::bad_alloc&) {
      return refuse(CUDA_ERROR_OUT_OF_MEMORY, {});
    }
  }

  static ImageResult load(const void* data, size_t bytes) {
    const int file = memfd_create("simgpu-module", MFD_CLOEXEC);
    if (file < 0) return refuse(CUDA_ERROR_OUT_OF_MEMORY, {});
    for (size_t written = 0; written < bytes;) {
      const ssize_t n = write(file, static_cast<const char*>(data) + written, bytes - written);
      if (n <= 0) {
        close(file);
        return refuse(CUDA_ERROR_OUT_OF_MEMORY, {});
      }
      written += static_cast<size_t>(n);
    }
    void* library = dlopen(unique_path(file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* why = dlerror();
      close(file);
      return refuse(CUDA_ERROR_INVALID_IMAGE, why != nullptr ? why : "dlopen failed");
    }
    std::shared_ptr<LoadedImage> image(new LoadedImage(library, file));
    using Table = const ModuleTable* (*)();
    const auto table_of = reinterpret_cast<Table>(dlsym(library, kModuleFunction));
    if (table_of == nullptr)
      return refuse(CUDA_ERROR_INVALID_IMAGE, "a shared object without simgpu kernels");
    const ModuleTable* table = table_of();
    if (table->abi_version != kModuleAbiVersion)
      return refuse(CUDA_ERROR_INVALID_IMAGE,
                    "built for another version of simgpu; build it again");
    for (const KernelGroup* group = table->groups; group != nullptr; group = group->next)
      for (size_t i = 0; i < group->count; ++i) image->kernels_.push_back(&group->kernels[i]);
    return {CUDA_SUCCESS, std::move(image), {static_cast<const std::byte*>(data), bytes}, {}};
  }
};

LoadedImage::LoadedImage(ptx::Module text) : text_(std::make_unique<ptx::Module>(std::move(text))) {
  for (const auto& function : text_->functions) {
    if (!function->is_entry || !function->has_body) continue;
    std::vector<ParamInfo> parameters;
    for (const ptx::Parameter& one : function->parameters)
      parameters.push_back({static_cast<uint32_t>(one.offset), static_cast<uint32_t>(one.bytes)});
    parameters_.push_back(std::move(parameters));
    entries_.push_back({function->name.c_str(), parameters_.back().data(),
                        static_cast<uint32_t>(parameters_.back().size()),
                        static_cast<uint32_t>(function->parameter_bytes()), 0, nullptr, nullptr});
  }
  for (const KernelEntry& entry : entries_) kernels_.push_back(&entry);
}

LoadedImage::~LoadedImage() {
  if (library_ == nullptr) return;
  dlclose(library_);
  close(file_);
}

const KernelEntry* LoadedImage::find(const std::string& name) const {
  for (const KernelEntry* kernel : kernels_)
    if (name == kernel->name) return kernel;
  return nullptr;
}

ImageResult load_image(const void* data, size_t bytes) {
  if (data == nullptr) return refuse(CUDA_ERROR_INVALID_VALUE, {});
  const FoundPtx found = find_ptx(data, bytes);
  ImageResult result = refuse(found.error, found.problem);
  if (found.error == CUDA_SUCCESS)
    result = ImageLoader::read(found.text);
  else if (const size_t size = bytes == 0 || bytes > 4 ? elf_bytes(data, bytes) : 0; size != 0)
    result = ImageLoader::load(data, size);
  else if (found.problem.empty())
    loads().refused = getpid();
  if (result.error == CUDA_SUCCESS) loads().any = true;
  if (!result.problem.empty()) complain("cannot load module: " + result.problem);
  return result;
}

bool read_file(const char* path, std::vector<std::byte>& bytes) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return false;
  const std::streamoff size = in.tellg();
  if (size < 0) return false;
  bytes.resize(static_cast<size_t>(size));
  in.seekg(0);
  return static_cast<bool>(in.read(reinterpret_cast<char*>(bytes.data()), size));
}

}  // namespace simgpu
