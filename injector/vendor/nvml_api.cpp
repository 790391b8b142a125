#include <dlfcn.h>
#include <injector/vendor/nvml_api.h>

namespace flopinj {

bool load_nvml(NvmlApi& api, std::string& error) {
  constexpr const char* kLibrary = "libnvidia-ml.so.1";
  void* const library = dlopen(kLibrary, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return error = std::string("there is no ") + kLibrary, false;
  const auto find = [&]<typename F>(F& function, const char* symbol) {
    function = reinterpret_cast<F>(dlsym(library, symbol));
    if (function == nullptr) error = std::string(kLibrary) + " has no " + symbol;
    return function != nullptr;
  };
  find(api.DeviceGetMigMode, "nvmlDeviceGetMigMode");
  return find(api.Init, "nvmlInit_v2") && find(api.Shutdown, "nvmlShutdown") &&
         find(api.ErrorString, "nvmlErrorString") &&
         find(api.DeviceGetHandleByUUID, "nvmlDeviceGetHandleByUUID") &&
         find(api.DeviceGetTotalEnergyConsumption, "nvmlDeviceGetTotalEnergyConsumption") &&
         find(api.DeviceGetComputeRunningProcesses, "nvmlDeviceGetComputeRunningProcesses_v3");
}

}  // namespace flopinj
