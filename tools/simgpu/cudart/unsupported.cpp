// What is not simulated. A program may ask for it and go another way: each function says it once.
// Their parameters do not matter: no header that declares them is included.
#include <atomic>
#include <cstdio>

namespace {

int refuse(const char* function, const char* what, std::atomic_flag& said) {
  if (!said.test_and_set()) std::fprintf(stderr, "simgpu: %s: %s not simulated\n", function, what);
  return 801;  // cudaErrorNotSupported
}

}  // namespace

#define CUDART_UNSUPPORTED(name, what)                           \
  extern "C" __attribute__((visibility("default"))) int name() { \
    static std::atomic_flag said;                                \
    return refuse(#name, what, said);                            \
  }
#include "cudart/unsupported.def"
