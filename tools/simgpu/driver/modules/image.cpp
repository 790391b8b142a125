#include "driver/modules/image.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>

#include "driver/settings.h"
#include "ptx/decode.h"

namespace simgpu {
namespace {

constexpr uint32_t kFatbinMagic = 0xBA55ED50;         // fatbinary.h: a fat binary
constexpr uint32_t kFatbinWrapperMagic = 0x466243B1;  // fatbinary_section.h: what nvcc embeds

bool starts_with(const void* data, size_t bytes, const char* text) {
  const size_t length = std::strlen(text);
  if (bytes != 0 && bytes < length) return false;
  return std::strncmp(static_cast<const char*>(data), text, length) == 0;
}

// Comments and blanks, then ".version": the first directive of every PTX text.
bool is_ptx(const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  const char* const end = bytes != 0 ? at + bytes : at + strnlen(at, 1 << 16);
  while (at < end) {
    if (std::strchr(" \t\r\n", *at) != nullptr && *at != '\0') {
      ++at;
    } else if (end - at > 1 && at[0] == '/' && at[1] == '/') {
      at = std::find(at, end, '\n');
    } else {
      return starts_with(at, static_cast<size_t>(end - at), ".version");
    }
  }
  return false;
}

// dlopen compares names with those of loaded libraries before it looks at the file, and file
// descriptors are used again; so every load gets its own spelling of the same path: a number in
// binary, as "/./" and "//".
std::string unique_path(int file) {
  static std::atomic<uint32_t> loads{0};
  std::string path = "/proc/self/fd";
  for (uint32_t n = loads.fetch_add(1) + 1; n != 0; n /= 2) path += n % 2 != 0 ? "/./" : "//";
  return path + "/" + std::to_string(file);
}

CUresult refuse(CUresult error, const std::string& why) {
  complain("cannot load module: " + why);
  return error;
}

}  // namespace

struct ImageLoader {
  // PTX: what cannot be run is found now, and not at the first launch.
  static ImageResult read(const void* data, size_t bytes) {
    try {
      ptx::Module text = ptx::parse({static_cast<const char*>(data), bytes});
      std::vector<std::unique_ptr<std::byte[]>> memory;
      const auto allocate = [&memory](uint64_t size) {
        memory.push_back(std::make_unique<std::byte[]>(size + ptx::kGlobalAlignment));
        return ptx::align(reinterpret_cast<uint64_t>(memory.back().get()), ptx::kGlobalAlignment);
      };
      static_cast<void>(ptx::decode(text, allocate));
      return {CUDA_SUCCESS, std::shared_ptr<LoadedImage>(new LoadedImage(std::move(text)))};
    } catch (const ptx::TextError& error) {
      return {refuse(CUDA_ERROR_INVALID_PTX, std::string("PTX, ") + error.what()), nullptr};
    } catch (const std::bad_alloc&) {
      return {CUDA_ERROR_OUT_OF_MEMORY, nullptr};
    }
  }

  static ImageResult load(const void* data, size_t bytes) {
    const int file = memfd_create("simgpu-module", MFD_CLOEXEC);
    if (file < 0) return {CUDA_ERROR_OUT_OF_MEMORY, nullptr};
    for (size_t written = 0; written < bytes;) {
      const ssize_t n = write(file, static_cast<const char*>(data) + written, bytes - written);
      if (n <= 0) {
        close(file);
        return {CUDA_ERROR_OUT_OF_MEMORY, nullptr};
      }
      written += static_cast<size_t>(n);
    }
    void* library = dlopen(unique_path(file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* why = dlerror();
      close(file);
      return {refuse(CUDA_ERROR_INVALID_IMAGE, why != nullptr ? why : "dlopen failed"), nullptr};
    }
    std::shared_ptr<LoadedImage> image(new LoadedImage(library, file));
    using Table = const ModuleTable* (*)();
    const auto table_of = reinterpret_cast<Table>(dlsym(library, kModuleFunction));
    if (table_of == nullptr)
      return {refuse(CUDA_ERROR_INVALID_IMAGE, "a shared object without simgpu kernels"), nullptr};
    const ModuleTable* table = table_of();
    if (table->abi_version != kModuleAbiVersion)
      return {
          refuse(CUDA_ERROR_INVALID_IMAGE, "built for another version of simgpu; build it again"),
          nullptr};
    for (const KernelGroup* group = table->groups; group != nullptr; group = group->next)
      for (size_t i = 0; i < group->count; ++i) image->kernels_.push_back(&group->kernels[i]);
    return {CUDA_SUCCESS, std::move(image)};
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

size_t image_bytes(const void* data, size_t limit) {
  if (is_ptx(data, limit)) {
    const char* const text = static_cast<const char*>(data);
    return limit != 0 ? strnlen(text, limit) : std::strlen(text);
  }
  if (limit != 0 && limit < sizeof(Elf64_Ehdr)) return 0;
  Elf64_Ehdr header;
  if (std::memcmp(data, ELFMAG, SELFMAG) != 0) return 0;
  std::memcpy(&header, data, sizeof header);
  // Linkers put the section headers last; segments end before them.
  const uint64_t end = header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_shoff == 0 || end < header.e_shoff) return limit;
  return limit != 0 && end > limit ? 0 : static_cast<size_t>(end);
}

ImageResult load_image(const void* data, size_t bytes) {
  if (data == nullptr) return {CUDA_ERROR_INVALID_VALUE, nullptr};
  if (bytes != 0 && bytes < sizeof(uint32_t))
    return {refuse(CUDA_ERROR_INVALID_IMAGE, "not a module: too short"), nullptr};
  uint32_t magic = 0;
  std::memcpy(&magic, data, sizeof magic);
  // Code for another GPU is refused without a word, as by a real driver: programs that carry
  // several images try them one after the other.
  if (magic == kFatbinMagic || magic == kFatbinWrapperMagic)
    return {CUDA_ERROR_NO_BINARY_FOR_GPU, nullptr};
  if (is_ptx(data, bytes)) return ImageLoader::read(data, image_bytes(data, bytes));
  const size_t size = image_bytes(data, bytes);
  if (size == 0)
    return {refuse(CUDA_ERROR_INVALID_IMAGE, "neither a .simgpu module nor CUDA code"), nullptr};
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof header);
  if (header.e_machine == kMachineCuda) return {CUDA_ERROR_NO_BINARY_FOR_GPU, nullptr};
  if (header.e_type != ET_DYN)
    return {refuse(CUDA_ERROR_INVALID_IMAGE, "an ELF file that is no .simgpu module"), nullptr};
  return ImageLoader::load(data, size);
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
