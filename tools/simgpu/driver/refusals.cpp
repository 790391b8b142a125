#include "driver/refusals.h"

#include <run_notice.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "driver/settings.h"

namespace simgpu {
namespace {

constexpr const char* kMachineCode = "this program carries machine code only: it needs a GPU";
constexpr const char* kRuntime =
    "this program uses the CUDA runtime, and libraries that are machine code: it needs a GPU. Here "
    "run programs that give PTX to the driver (cuda-core, Numba, Taichi, tinygrad, Triton's "
    "kernels), and nvcc's, linked with -cudart shared";

// They outlive static objects: a tool may ask at the very end.
std::atomic<const char*> reason{nullptr};
std::atomic<pid_t> refused{0};  // the process; a fork's child asks for itself
std::atomic<bool> any{false};

// `flopinj run` has a line of its own for a run that recorded nothing, unless one of its processes
// has said why. FLOPINJ_RUN ends with the place of that run's watcher.
void tell_run() {
  const char* const run = std::getenv("FLOPINJ_RUN");
  std::string_view place = run != nullptr ? run : "";
  for (int fields = 0; fields < 2; ++fields) {
    const size_t colon = place.find(':');
    if (colon == place.npos) return;
    place.remove_prefix(colon + 1);
  }
  flopinj::send_run_notice(place, {flopinj::RunEvent::kRefused, {}});
}

struct LastWords {
  ~LastWords() {
    if (const char* const text = refusal(); text != nullptr) {
      complain(text);
      tell_run();
    }
  }
};

void note(const char* text) {
  static const LastWords words;
  reason = text;
  refused = getpid();
}

}  // namespace

void machine_code_refused() { note(kMachineCode); }
void private_table_refused() { note(kRuntime); }
void module_loaded() { any = true; }

const char* refusal() { return !any && refused == getpid() ? reason.load() : nullptr; }

}  // namespace simgpu
