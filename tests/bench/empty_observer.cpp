// An observer of PyTorch's operators that only counts them: what PyTorch itself takes for one that
// is given their arguments. annotate_cost.py builds it as flopinj.torch builds its own.
#include <ATen/record_function.h>

namespace {
thread_local uint64_t t_calls = 0;
}

extern "C" {
__attribute__((visibility("default"))) uint64_t empty_observer_begin() {
  t_calls = 0;
  return at::addThreadLocalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
            ++t_calls;
            return nullptr;
          },
          [](const at::RecordFunction&, at::ObserverContext*) {})
          .needsInputs(true));
}
// How many there were on this thread.
__attribute__((visibility("default"))) uint64_t empty_observer_end(uint64_t handle) {
  at::removeCallback(handle);
  return t_calls;
}
}
