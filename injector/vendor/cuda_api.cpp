#include <dlfcn.h>
#include <fcntl.h>
#include <injector/vendor/cuda_api.h>
#include <unistd.h>

#include <string>

namespace flopinj {
namespace {

constexpr int kMostDeviceFiles = 256;

}  // namespace

bool load_cuda(CudaApi& api) {
  // RTLD_NOLOAD: we live inside the program's driver and never bring one of our own. The handle is
  // kept for good.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
#define FLOPINJ_RESOLVE(name, symbol) \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #symbol));
#define FLOPINJ_RESOLVE_VERSIONED(name, symbol) \
  FLOPINJ_RESOLVE(name, symbol)  // expands cuda.h's renaming macros
  FLOPINJ_CUDA_FUNCTIONS(FLOPINJ_RESOLVE_VERSIONED)
#undef FLOPINJ_RESOLVE_VERSIONED
#undef FLOPINJ_RESOLVE
  // simgpu names itself, so that nothing measured on it can pass for hardware.
  api.simulated = dlsym(library, "simgpu_version") != nullptr;
  const auto instruments = reinterpret_cast<bool (*)()>(dlsym(library, "simgpu_instruments_all"));
  api.instruments_all = instruments != nullptr && instruments();
  api.refusal = reinterpret_cast<decltype(api.refusal)>(dlsym(library, "simgpu_refusal"));
  const auto clock = reinterpret_cast<decltype(api.clock_ns)>(dlsym(library, "simgpu_clock_ns"));
  if (clock != nullptr && clock() != 0) api.clock_ns = clock;
  return true;
}

uint32_t driver_version(const CudaApi& api) {
  int version = 0;
  if (api.DriverGetVersion == nullptr || api.DriverGetVersion(&version) != CUDA_SUCCESS) return 0;
  return static_cast<uint32_t>(version);
}

bool has_gpu(const CudaApi& api) {
  if (api.simulated) return true;
  // WSL 2, Jetson
  for (const char* const file : {"/dev/dxg", "/dev/nvhost-gpu", "/dev/nvgpu"})
    if (access(file, F_OK) == 0) return true;
  // Servers and desktops. The control file says nothing by being there: the driver itself makes it
  // where it may. It can be opened where there is a kernel module.
  const int control = ::open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
  if (control < 0) return false;
  close(control);
  for (int number = 0; number < kMostDeviceFiles; ++number)
    if (access(("/dev/nvidia" + std::to_string(number)).c_str(), F_OK) == 0) return true;
  return false;
}

}  // namespace flopinj
