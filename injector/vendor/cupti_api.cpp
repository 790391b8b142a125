#include <collector/options/cupti_file.h>
#include <dlfcn.h>
#include <injector/vendor/cupti_api.h>
#include <injector/vendor/cupti_check.h>
#include <link.h>

#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

namespace flopinj {
namespace {

constexpr uint32_t kOldestMajor = 12;
constexpr uint32_t kNewestMajor = 13;  // looked for where the driver does not say its version

struct Library {
  void* handle = nullptr;
  std::string path;
  uint32_t major = 0;  // of its name (libcupti.so.13); 0: it has none
};

// Of "libcupti.so.13"; 0 of "libcupti.so", and of toolkits' own "libcupti.so.2025.3.1".
uint32_t major_in(std::string_view name) {
  constexpr std::string_view kName = "libcupti.so.";
  if (const size_t slash = name.rfind('/'); slash != name.npos) name.remove_prefix(slash + 1);
  uint32_t major = 0;
  if (!name.starts_with(kName)) return 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kName.size(), end, major);
  return error == std::errc{} && rest == end ? major : 0;
}

// By its name, without a call into the library: one that does not fit the driver may crash in any.
uint32_t major_of(const link_map& map) {
  if (const uint32_t major = map.l_name != nullptr ? major_in(map.l_name) : 0; major != 0)
    return major;
  const char* strings = nullptr;
  size_t soname = 0;
  for (const ElfW(Dyn)* entry = map.l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SONAME) soname = entry->d_un.d_val;
  }
  return strings != nullptr && soname != 0 ? major_in(strings + soname) : 0;
}

Library open(const std::string& name, int flags = 0) {
  // A FIFO would be waited for. What is loaded needs no file, and a name without a folder has none.
  if (std::error_code none;
      flags == 0 && name.find('/') != name.npos && !std::filesystem::is_regular_file(name, none))
    return {};
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  if (handle == nullptr) return {};
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {handle, name, 0};
  return {handle, map->l_name != nullptr ? map->l_name : name, major_of(*map)};
}

// File names of what is loaded, of those whose own name begins so.
std::vector<std::filesystem::path> loaded_libraries(std::string_view begins) {
  struct Search {
    std::string_view begins;
    std::vector<std::filesystem::path> found;
    bool no_memory = false;
  } search{begins, {}};
  // An exception cannot pass the C library's frame below the callback.
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) noexcept {
        auto& out = *static_cast<Search*>(data);
        try {
          std::filesystem::path name = info->dlpi_name != nullptr ? info->dlpi_name : "";
          if (name.filename().native().starts_with(out.begins))
            out.found.push_back(std::move(name));
        } catch (const std::bad_alloc&) {
          out.no_memory = true;
        }
        return out.no_memory ? 1 : 0;
      },
      &search);
  if (search.no_memory) throw std::bad_alloc();
  return std::move(search.found);
}

// Sonames that may work, best first: the driver's own major, then older ones.
std::vector<std::string> sonames(uint32_t driver_major) {
  std::vector<std::string> names;
  for (uint32_t major = driver_major != 0 ? driver_major : kNewestMajor; major >= kOldestMajor;
       --major)
    names.push_back("libcupti.so." + std::to_string(major));
  return names;
}

bool fits(const Library& library, uint32_t driver_major) {
  return driver_major == 0 || library.major <= driver_major;
}

// The simulated driver works with its own CUPTI only: NVIDIA's calls itself without end on it.
bool is_of(const CudaApi& cuda, const Library& library) {
  return !cuda.simulated || dlsym(library.handle, "cuptiSimgpuVersion") != nullptr;
}

// Of what the process has already loaded (JAX loads a CUPTI of each wheel), the best that fits;
// where none does, one that does not.
Library loaded_cupti(const CudaApi& cuda, uint32_t driver_major) {
  Library best;
  for (const auto& path : loaded_libraries("libcupti.so")) {
    Library library = open(path.native(), RTLD_NOLOAD);
    if (library.handle == nullptr || !is_of(cuda, library)) continue;
    const bool better = !fits(best, driver_major)
                            ? fits(library, driver_major) || library.major < best.major
                            : fits(library, driver_major) && library.major > best.major;
    if (best.handle == nullptr || better) best = std::move(library);
  }
  return best;
}

std::filesystem::path folder_of_driver(const CudaApi& cuda) {
  Dl_info info{};
  if (cuda.DriverGetVersion == nullptr ||
      dladdr(reinterpret_cast<const void*>(cuda.DriverGetVersion), &info) == 0 ||
      info.dli_fname == nullptr)
    return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

// Where CUPTI may be, the nearest first.
std::vector<std::filesystem::path> folders(const CudaApi& cuda) {
  std::vector<std::filesystem::path> found;
  const std::filesystem::path loaders_path;
  if (cuda.simulated) return {loaders_path, folder_of_driver(cuda)};
  // PyTorch's wheels put CUPTI next to the CUDA runtime of the process, in a folder of its own.
  for (const auto& runtime : loaded_libraries("libcudart.so")) {
    const auto beside = runtime.parent_path();
    for (const auto& folder :
         {beside, beside / "../../cuda_cupti/lib", beside / "../extras/CUPTI/lib64"})
      found.push_back(folder);
  }
  found.push_back(loaders_path);
  found.emplace_back("/usr/local/cuda/extras/CUPTI/lib64");
  found.emplace_back("/usr/local/cuda/lib64");
  return found;
}

// Where the driver's own major is preferred to what is nearer: first all places with one name.
Library search(const CudaApi& cuda, uint32_t driver_major) {
  const auto places = folders(cuda);
  for (const std::string& soname : sonames(driver_major))
    for (const auto& folder : places)
      if (Library l = open((folder / soname).string()); l.handle != nullptr && is_of(cuda, l))
        return l;
  return {};
}

std::string version_text(uint32_t driver) {
  return std::to_string(driver / 1'000) + "." + std::to_string(driver % 1'000 / 10);
}

// The one that FLOPINJ_CUPTI names.
struct Named {
  CuptiFile file;
  Library loaded;  // without a handle where it is not in the process
};

Named read_named(const std::string& preferred) {
  if (preferred.empty()) return {};
  Named named{find_cupti_file(preferred, {}), {}};
  if (named.file.problem.empty()) named.loaded = open(named.file.path, RTLD_NOLOAD);
  return named;
}

std::string passed_over_line(const std::string& preferred, const CuptiFile& named,
                             const std::string& used) {
  if (!named.problem.empty())
    return "FLOPINJ_CUPTI: " + named.problem + "; the program's own, " + used + ", is used";
  return "FLOPINJ_CUPTI=" + preferred + " is not used, since the program has loaded " + used +
         "; flopinj run --cupti FILE preloads it before";
}

// Nothing, with one line in `error`, where there is none that can work. `passed_over`: one line
// where the named one is not used, since another was there first: two in a process do not work.
Library find_cupti(const std::string& preferred, const CudaApi& cuda, std::string& error,
                   std::string& passed_over) {
  const uint32_t driver = driver_version(cuda), driver_major = driver / 1'000;
  const Named named = read_named(preferred);
  Library library = named.loaded;
  if (library.handle == nullptr) {
    library = loaded_cupti(cuda, driver_major);
    if (library.handle != nullptr && !preferred.empty())
      passed_over = passed_over_line(preferred, named.file, library.path);
  }
  if (library.handle == nullptr && !named.file.problem.empty()) {
    error = "FLOPINJ_CUPTI: " + named.file.problem;
    return {};
  }
  if (library.handle == nullptr)  // where one is named nothing else will do
    library = preferred.empty() ? search(cuda, driver_major) : open(named.file.path);
  if (library.handle != nullptr && !is_of(cuda, library)) {
    error = "FLOPINJ_CUPTI=" + preferred + " is not the CUPTI of the simulated GPU; unset it";
    return {};
  }
  if (library.handle == nullptr) {
    const auto names = sonames(driver_major);
    const bool wheel_12 = driver_major == 12;
    error = preferred.empty()
                ? "no " + names.front() + (names.size() > 1 ? " or older" : "") + " found" +
                      (driver != 0 ? " for this driver (CUDA " + version_text(driver) + ")" : "") +
                      "; put it on LD_LIBRARY_PATH, set FLOPINJ_CUPTI to it, or: pip install " +
                      (wheel_12 ? "nvidia-cuda-cupti-cu12" : "nvidia-cuda-cupti")
                : "FLOPINJ_CUPTI=" + preferred + " cannot be loaded";
    return {};
  }
  if (fits(library, driver_major)) return library;
  error = library.path + " is of CUDA " + std::to_string(library.major) +
          " and the driver of CUDA " + version_text(driver) +
          ", where it does not work; update the driver, or use packages for CUDA " +
          std::to_string(driver_major);
  return {};
}

template <class Function>
bool resolve(void* library, const char* symbol, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, symbol));
  return out != nullptr;
}

}  // namespace

bool load_cupti(const std::string& preferred_path, const CudaApi& cuda, CuptiApi& api,
                std::string& error) {
  const Library library = find_cupti(preferred_path, cuda, error, api.passed_over);
  if (library.handle == nullptr) return false;
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
            ": it is too old; CUPTI 12.1 or later is needed";
    return false;
  }
  // A client that cannot share CUPTI comes first: it is the program's.
  api.ours_only = api.own.available = loaded_libraries("libtorch_cpu.so").empty();
#define FLOPINJ_NEEDED(name, ...) \
  if (!resolve(library.handle, "cupti" #name "_v2", api.own.name)) api.own.available = false;
#define FLOPINJ_NEWER(name, ...) resolve(library.handle, "cupti" #name "_v2", api.own.name);
  FLOPINJ_CUPTI_SUBSCRIBER_FUNCTIONS(FLOPINJ_NEEDED, FLOPINJ_NEWER)
#undef FLOPINJ_NEEDED
#undef FLOPINJ_NEWER
  api.range_profiler = missing_range == nullptr;
  if (missing_range != nullptr) api.missing = missing_range;
  return true;
}

bool read_version(CuptiApi& api, std::string& error) {
  Problem problem;
  if (check(api.GetVersion(&api.version), "cuptiGetVersion", problem)) return true;
  error = api.path + ": " + problem.line;
  return false;
}

}  // namespace flopinj
