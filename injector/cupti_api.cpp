#include <dlfcn.h>
#include <injector/cupti_api.h>
#include <link.h>

#include <cstring>
#include <filesystem>
#include <vector>

namespace flopinj {
namespace {

struct Library {
  void* handle = nullptr;
  std::string path;
};

// The CUPTI that is already loaded, under whatever path.
Library loaded_cupti() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        const char* name = info->dlpi_name != nullptr ? info->dlpi_name : "";
        const char* slash = std::strrchr(name, '/');
        const char* base = slash != nullptr ? slash + 1 : name;
        if (std::strncmp(base, "libcupti.so", 11) != 0) return 0;
        *static_cast<std::string*>(out) = name;
        return 1;
      },
      &path);
  if (path.empty()) return {};
  return {dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD), path};
}

std::string path_of(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr)
    return map->l_name;
  return {};
}

Library open(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {};
  return {handle, path_of(handle)};
}

// Beside the CUDA runtime of the process: PyTorch's wheels put CUPTI next to it, in a folder of
// their own.
std::vector<std::string> beside_cuda_runtime() {
  std::vector<std::string> found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        const std::filesystem::path name = info->dlpi_name != nullptr ? info->dlpi_name : "";
        if (name.filename().string().rfind("libcudart.so", 0) != 0) return 0;
        auto& list = *static_cast<std::vector<std::string>*>(out);
        const auto folder = name.parent_path();
        for (const auto& place :
             {folder, folder / "../../cuda_cupti/lib", folder / "../extras/CUPTI/lib64"})
          for (const char* soname : {"libcupti.so.13", "libcupti.so.12"})
            list.push_back((place / soname).string());
        return 0;
      },
      &found);
  return found;
}

Library find_cupti(const std::string& preferred) {
  if (Library l = loaded_cupti(); l.handle != nullptr) return l;
  if (!preferred.empty()) return open(preferred);  // asked for by name: nothing else will do
  std::vector<std::string> places = beside_cuda_runtime();
  for (const char* soname : {"libcupti.so.13", "libcupti.so.12"}) places.emplace_back(soname);
  for (const char* root : {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"})
    for (const char* soname : {"libcupti.so.13", "libcupti.so.12"})
      places.push_back(std::string(root) + "/" + soname);
  for (const auto& place : places)
    if (Library l = open(place); l.handle != nullptr) return l;
  return {};
}

template <class Function>
bool resolve(void* library, const char* symbol, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, symbol));
  return out != nullptr;
}

}  // namespace

bool load_cupti(const std::string& preferred_path, CuptiApi& api, std::string& error) {
  const Library library = find_cupti(preferred_path);
  if (library.handle == nullptr) {
    error = preferred_path.empty() ? "no libcupti.so.12 or .13 found; put it on LD_LIBRARY_PATH, "
                                     "set FLOPINJ_CUPTI to it, or: "
                                     "pip install nvidia-cuda-cupti"
                                   : "FLOPINJ_CUPTI=" + preferred_path + " cannot be loaded";
    return false;
  }
  api.path = library.path;
  const char* missing_required = nullptr;
  const char* missing_range = nullptr;
#define FLOPINJ_REQUIRED(name) \
  if (!resolve(library.handle, "cupti" #name, api.name)) missing_required = "cupti" #name;
#define FLOPINJ_RANGE(name) \
  if (!resolve(library.handle, "cupti" #name, api.name)) missing_range = "cupti" #name;
#define FLOPINJ_OPTIONAL(name) resolve(library.handle, "cupti" #name, api.name);
  FLOPINJ_CUPTI_FUNCTIONS(FLOPINJ_REQUIRED, FLOPINJ_RANGE, FLOPINJ_OPTIONAL)
#undef FLOPINJ_REQUIRED
#undef FLOPINJ_RANGE
#undef FLOPINJ_OPTIONAL
  if (missing_required != nullptr) {
    error = library.path + " has no " + missing_required +
            ": it is too old; CUPTI 12.6 or later is needed";
    return false;
  }
  api.range_profiler = missing_range == nullptr;
  if (missing_range != nullptr) api.missing = missing_range;
  api.GetVersion(&api.version);
  return true;
}

std::string describe(const CuptiApi& api, CUptiResult result) {
  const char* name = nullptr;
  if (api.GetResultString == nullptr || api.GetResultString(result, &name) != CUPTI_SUCCESS ||
      name == nullptr)
    name = "CUPTI error";
  return std::string(name) + " (" + std::to_string(static_cast<int>(result)) + ")";
}

}  // namespace flopinj
