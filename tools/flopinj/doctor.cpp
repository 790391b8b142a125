#include "doctor.h"

#include <collector/identity/never_measured.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "exit_codes.h"
#include "permissions.h"

namespace flopinj {
namespace {

enum class Verdict { kOk, kFailed, kNoPermission };

Verdict report(Verdict verdict, const std::string& what, const std::string& finding,
               const std::string& advice = {}) {
  std::cout << (verdict == Verdict::kOk ? "ok    " : "FAIL  ") << what << ": " << finding << "\n";
  if (!advice.empty()) std::cout << "      " << advice << "\n";
  return verdict;
}

std::string read_file(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
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

Verdict check_library(const InstallTree& tree) {
  void* library = dlopen(tree.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return report(Verdict::kFailed, "libflopinj.so", dlerror(), "Build or install all of flopinj.");
  }
  for (const char* name : {"InitializeInjection", "InitializeInjectionNvtx2"}) {
    if (dlsym(library, name) == nullptr) {
      return report(Verdict::kFailed, "libflopinj.so", tree.library.string() + " has no " + name);
    }
  }
  return report(Verdict::kOk, "libflopinj.so", tree.library.string());
}

Verdict check_driver() {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (cuda == nullptr) {
    return report(Verdict::kFailed, "CUDA driver", "libcuda.so.1 not found",
                  "Install the NVIDIA driver; in a container, start it with the NVIDIA runtime "
                  "(docker run --gpus all). Without a GPU: flopinj run --simulate.");
  }
  const std::string path = path_of(cuda);
  auto* init = symbol<int(unsigned)>(cuda, "cuInit");
  auto* get_version = symbol<int(int*)>(cuda, "cuDriverGetVersion");
  auto* get_count = symbol<int(int*)>(cuda, "cuDeviceGetCount");
  if (init == nullptr || get_version == nullptr || get_count == nullptr) {
    return report(Verdict::kFailed, "CUDA driver", path + " is not a CUDA driver library");
  }
  int version = 0;
  get_version(&version);
  const std::string found = path + ", CUDA " + cuda_version_text(version);
  if (const int error = init(0); error != 0) {
    return report(Verdict::kFailed, "CUDA driver", found + ", cuInit says " + std::to_string(error),
                  "No usable GPU: see nvidia-smi and CUDA_VISIBLE_DEVICES.");
  }
  int devices = 0;
  get_count(&devices);
  if (devices == 0) return report(Verdict::kFailed, "CUDA driver", found + ", no GPU");
  return report(Verdict::kOk, "CUDA driver",
                found + ", " + std::to_string(devices) + (devices == 1 ? " GPU" : " GPUs"));
}

// A program that has its own CUPTI loaded is profiled with that one. What is said here holds for
// the others.
Verdict check_cupti() {
  void* cupti = nullptr;
  const char* chosen = std::getenv("FLOPINJ_CUPTI");
  if (chosen != nullptr && *chosen != '\0') {
    cupti = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    if (cupti == nullptr) {
      return report(Verdict::kFailed, "CUPTI", dlerror(), "Mend or unset FLOPINJ_CUPTI.");
    }
  }
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
    if (cupti == nullptr) cupti = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (cupti == nullptr) {
    return report(
        Verdict::kFailed, "CUPTI", "libcupti.so not found",
        "Programs that bring their own (PyTorch) are profiled nevertheless. For others, put a CUDA "
        "toolkit's extras/CUPTI/lib64 on LD_LIBRARY_PATH or name the file in FLOPINJ_CUPTI.");
  }
  const std::string path = path_of(cupti);
  auto* get_version = symbol<int(uint32_t*)>(cupti, "cuptiGetVersion");
  uint32_t version = 0;
  if (get_version == nullptr || get_version(&version) != 0) {
    return report(Verdict::kFailed, "CUPTI", path + " does not tell its version");
  }
  if (dlsym(cupti, "cuptiRangeProfilerEnable") == nullptr) {
    return report(Verdict::kFailed, "CUPTI",
                  path + ", API version " + std::to_string(version) + ", has no range profiler",
                  "Launches are counted and timed but no FLOP are. CUDA 12.6 or later has it.");
  }
  return report(Verdict::kOk, "CUPTI", path + ", API version " + std::to_string(version));
}

Verdict check_permission() {
  const std::string params = read_file("/proc/driver/nvidia/params");
  const uint64_t capabilities = effective_capabilities(read_file("/proc/self/status"));
  const unsigned release = driver_release(read_file("/proc/driver/nvidia/version"));
  switch (counter_access(params, capabilities, release)) {
    case CounterAccess::kOpen:
      return report(Verdict::kOk, "counters", "open to every user");
    case CounterAccess::kPrivileged:
      return report(Verdict::kOk, "counters", "open to privileged users, as this process is");
    case CounterAccess::kUnknown:
      return report(Verdict::kOk, "counters", "no NVIDIA driver here that restricts them");
    case CounterAccess::kClosed:
      break;
  }
  return report(
      Verdict::kNoPermission, "counters", "closed to this user (RmProfilingAdminOnly: 1)",
      "Run as root, grant CAP_SYS_ADMIN (CAP_PERFMON from driver 565 on), or put the line "
      "'options nvidia NVreg_RestrictProfilingToAdminUsers=0' into /etc/modprobe.d/nvidia.conf and "
      "reboot.");
}

}  // namespace

int doctor(const InstallTree& tree) {
  unsetenv("CUDA_INJECTION64_PATH");  // cuInit would load a profiler into this process
  bool failed = false;
  bool closed = false;
  for (const Verdict verdict :
       {check_library(tree), check_driver(), check_cupti(), check_permission()}) {
    failed |= verdict == Verdict::kFailed;
    closed |= verdict == Verdict::kNoPermission;
  }
  list_never_measured();
  if (closed) return kExitPermission;
  return failed ? kExitCheckFailed : kExitOk;
}

}  // namespace flopinj
