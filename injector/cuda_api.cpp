#include <dlfcn.h>
#include <injector/cuda_api.h>

namespace flopinj {

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
  return true;
}

}  // namespace flopinj
