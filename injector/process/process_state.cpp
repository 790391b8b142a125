#include <injector/process/process_state.h>
#include <sys/mman.h>

#include <new>

namespace flopinj {
namespace {

// Never destroyed: threads, callbacks and handlers may outlive static objects.
union NeverDestroyed {
  constexpr NeverDestroyed() : value{} {}
  ~NeverDestroyed() {}
  ProcessState value;
};
constinit NeverDestroyed g_first;

}  // namespace

constinit std::atomic<ProcessState*> current_process_state{&g_first.value};

ProcessState& renew_process_state() noexcept {
  void* place = mmap(nullptr, sizeof(ProcessState), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) place = &process_state();
  auto* const mine = new (place) ProcessState;
  current_process_state.store(mine, std::memory_order_release);
  return *mine;
}

}  // namespace flopinj
