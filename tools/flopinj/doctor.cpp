#include <collector/identity/never_measured.h>
#include <collector/options/cupti_file.h>
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "commands.h"
#include "count.h"
#include "driver.h"
#include "permissions.h"
#include "printable_text.h"
#include "process.h"
#include "terminal_colors.h"

namespace flopinj {
namespace {

struct Finding {
  int exit_code;
  std::string text, advice;
};

Finding fine(const std::string& text) { return {kExitOk, text, ""}; }
Finding failed(const std::string& text, const std::string& advice = "") {
  return {kExitCheckFailed, text, advice};
}

std::string path_of(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "?";
  return map->l_name;
}

template <typename Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// CUDA writes version 13.0 as 13000.
std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Kernels that would hang in a measurement window; `flopinj run --never-measure` adds to them.
void list_never_measured() {
  constexpr size_t kMostColumns = 100;
  std::cout << "note  never measured: kernels whose mangled names hold one of\n";
  std::string line = "     ";
  for (const auto patterns : {communication_patterns(), waiting_patterns()})
    for (const std::string_view pattern : patterns) {
      if (line.size() + 1 + pattern.size() > kMostColumns) {
        std::cout << line << "\n";
        line = "     ";
      }
      line.append(" ").append(pattern);
    }
  std::cout << line << "\n      More of them: flopinj run --never-measure PATTERN\n";
}

Finding check_library() {
  const std::string ours = install_tree().library;
  void* library = dlopen(ours.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return failed(dlerror(), "Build or install all of flopinj.");
  for (const char* name : {"InitializeInjection", "InitializeInjectionNvtx2"}) {
    if (dlsym(library, name) == nullptr) return failed(ours + " has no " + name);
  }
  return fine(ours);
}

Finding check_driver() {
  void* cuda = open_driver();
  if (cuda == nullptr) return failed("libcuda.so.1 not found", kNoDriverAdvice);
  const std::string path = path_of(cuda);
  auto* init = symbol<int(unsigned)>(cuda, "cuInit");
  auto* get_version = symbol<int(int*)>(cuda, "cuDriverGetVersion");
  auto* get_count = symbol<int(int*)>(cuda, "cuDeviceGetCount");
  if (init == nullptr || get_version == nullptr || get_count == nullptr)
    return failed(path + " is not a CUDA driver library");
  int version = 0;
  get_version(&version);
  const std::string found = path + ", CUDA " + cuda_version_text(version);
  if (const int error = init(0); error != 0)
    return failed(found + ", cuInit says " + std::to_string(error),
                  "No usable GPU: see nvidia-smi and CUDA_VISIBLE_DEVICES.");
  int devices = 0;
  get_count(&devices);
  if (devices == 0) return failed(found + ", no GPU");
  return fine(found + ", " + std::to_string(devices) + (devices == 1 ? " GPU" : " GPUs"));
}

std::string without_range_profiler() {
  return "Kernels are timed, and no FLOP are counted. To count them: " + std::string(kToCountFlop);
}

bool has_range_profiler(void* cupti) { return dlsym(cupti, "cuptiRangeProfilerEnable") != nullptr; }

// A program that has its own CUPTI loaded is profiled with that one. What is said here holds for
// the others.
Finding check_cupti() {
  void* cupti = nullptr;
  const char* chosen = std::getenv("FLOPINJ_CUPTI");
  if (chosen != nullptr && *chosen != '\0') {
    const CuptiFile named = find_cupti_file(chosen, {});
    if (!named.problem.empty()) return failed(named.problem, "Mend or unset FLOPINJ_CUPTI.");
    cupti = dlopen(named.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (cupti == nullptr) return failed(dlerror(), "Mend or unset FLOPINJ_CUPTI.");
  }
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
    if (cupti == nullptr) cupti = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (cupti == nullptr)
    return failed(
        "libcupti.so not found",
        "Programs that bring their own (PyTorch) are profiled nevertheless. For others, put a CUDA "
        "toolkit's extras/CUPTI/lib64 on LD_LIBRARY_PATH or name the file in FLOPINJ_CUPTI.");
  const std::string path = path_of(cupti);
  auto* get_version = symbol<int(uint32_t*)>(cupti, "cuptiGetVersion");
  uint32_t version = 0;
  if (get_version == nullptr || get_version(&version) != 0)
    return failed(path + " does not tell its version");
  if (!has_range_profiler(cupti))
    return failed(path + ", API version " + std::to_string(version) + ", has no range profiler",
                  without_range_profiler());
  return fine(path + ", API version " + std::to_string(version));
}

// The CUPTI that PyTorch of the user's Python would load: it is used then, unless another is named.
// A line for PyTorch's version, and one for each file. Nothing of PyTorch is imported, and no
// function of such a CUPTI is called: some crash where they cannot start.
constexpr const char* kAskPython = R"(
import importlib.metadata as metadata, importlib.util as util, pathlib
if util.find_spec("torch"):
    print("PyTorch", metadata.version("torch"))
    found = set(pathlib.Path(util.find_spec("torch").origin).parent.glob("lib/libcupti*.so*"))
    for package in metadata.distributions():
        if (package.metadata["Name"] or "").startswith("nvidia-cuda-cupti"):
            found |= {pathlib.Path(package.locate_file(file)) for file in package.files or ()
                      if file.name.startswith("libcupti.so")}
    for file in sorted(found):
        print(file.resolve())
)";

void say_cupti_of_python() {
  std::istringstream lines;
  try {
    lines.str(output_of({"python3", "-c", kAskPython}));
  } catch (const std::runtime_error&) {
    return;  // no Python
  }
  std::string torch, file;
  if (!std::getline(lines, torch)) return;
  const std::string begin = "note  " + printable(torch) + " of python3 brings ";
  bool any = false;
  for (; std::getline(lines, file); any = true) {
    std::cout << begin << printable(file);
    void* const cupti = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (cupti == nullptr)
      std::cout << ", which cannot be loaded\n";
    else if (has_range_profiler(cupti))
      std::cout << "\n";
    else
      std::cout << ", which has no range profiler\n      " << without_range_profiler() << "\n";
  }
  if (!any) std::cout << begin << "no CUPTI\n";
}

// Of any of its devices. cuInit has been called.
bool shared_by_mps() {
  constexpr int kMpsEnabled = 133;  // CU_DEVICE_ATTRIBUTE_MPS_ENABLED
  void* const cuda = open_driver();
  if (cuda == nullptr) return false;
  auto* get_count = symbol<int(int*)>(cuda, "cuDeviceGetCount");
  auto* get = symbol<int(int*, int)>(cuda, "cuDeviceGet");
  auto* get_attribute = symbol<int(int*, int, int)>(cuda, "cuDeviceGetAttribute");
  int devices = 0;
  if (get_count == nullptr || get == nullptr || get_attribute == nullptr ||
      get_count(&devices) != 0)
    return false;
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    int device = 0, shared = 0;
    if (get(&device, ordinal) == 0 && get_attribute(&shared, kMpsEnabled, device) == 0 &&
        shared != 0)
      return true;
  }
  return false;
}

Finding check_permission() {
  if (shared_by_mps())
    return failed("not supported by NVIDIA on a GPU that is shared by MPS",
                  "Run the program without MPS; under it kernels are timed and no FLOP are "
                  "counted.");
  const std::string params = file_text("/proc/driver/nvidia/params");
  const uint64_t capabilities = effective_capabilities(file_text("/proc/self/status"));
  const unsigned release = driver_release(file_text("/proc/driver/nvidia/version"));
  switch (counter_access(params, capabilities, release)) {
    case CounterAccess::kOpen:
      return fine("open to every user");
    case CounterAccess::kPrivileged:
      return fine("open to privileged users, as this process is");
    case CounterAccess::kUnknown:
      return fine("no NVIDIA driver here that restricts them");
    case CounterAccess::kClosed:
      break;
  }
  return {
      kExitPermission, "closed to this user (RmProfilingAdminOnly: 1)",
      "Run as root, grant CAP_SYS_ADMIN (CAP_PERFMON from driver 565 on), or put the line 'options "
      "nvidia NVreg_RestrictProfilingToAdminUsers=0' into /etc/modprobe.d/nvidia.conf and reboot."};
}

}  // namespace

int doctor(const Options& options) {
  if (options.simulate) return doctor_of_simulator(options);
  unsetenv("CUDA_INJECTION64_PATH");  // cuInit would load a profiler into this process
  constexpr std::pair<const char*, Finding (*)()> kChecks[] = {{"libflopinj.so", check_library},
                                                               {"CUDA driver", check_driver},
                                                               {"CUPTI", check_cupti},
                                                               {"counters", check_permission}};
  int worst = kExitOk;
  for (const auto& [name, check] : kChecks) {
    const Finding found = check();
    const bool good = found.exit_code == kExitOk;
    std::cout << painted_verdict(good ? "ok" : "FAIL", good, STDOUT_FILENO)
              << (good ? "    " : "  ") << name << ": " << found.text << "\n";
    if (!found.advice.empty()) std::cout << "      " << found.advice << "\n";
    worst = std::max(worst, found.exit_code);
  }
  if (!options.count) say_cupti_of_python();
  list_never_measured();
  if (!options.count || worst == kExitOk) return options.count ? count_known_kernels() : worst;
  std::cout << "note  nothing was counted: mend the above first\n";
  return worst;
}

}  // namespace flopinj
