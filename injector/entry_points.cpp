// The functions by which the world reaches us, and nothing else: exports.map names exactly these.
//
// - CUDA: the driver loads CUDA_INJECTION64_PATH inside the program's cuInit and calls
//   InitializeInjection.
// - NVTX: every copy of NVTX in the process (the executable and each library have their own) loads
//   NVTX_INJECTION64_PATH at its first call and calls InitializeInjectionNvtx2 (version 3) or
//   InitializeInjectionNvtx (version 2, libnvToolsExt), so these run several times.
// - LD_PRELOAD: the constructor sets the two variables to our own path where they are not set, and
//   nothing else: at that moment neither CUDA nor the program is ready.
// - flopinj attach: a thread of a program that was started without the library loads it, and calls
//   flopinj_listen(); all else is asked for by the control socket.
// - The program itself, as flopinj.record() does: flopinj_request() (requests.h).
// - flopinj.torch: its observer of operators asks flopinj_operators() for the functions that it
//   calls around each of them (operators.h).
//
// In a set-user-id program none of them does anything.
#include <dlfcn.h>
#include <injector/nvtx.h>
#include <injector/operators.h>
#include <injector/process/this_thread.h>
#include <injector/requests.h>
#include <injector/session.h>
#include <sys/auxv.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#define FLOPINJ_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// A set-user-id program acts for another user than the one who set its environment. The driver
// loads us there all the same: we then read no variable, write no file and start nothing.
bool privileged() { return getauxval(AT_SECURE) != 0; }

// Where there was no memory as we were loaded, not even an exception can be thrown.
bool has_memory() {
  constexpr size_t kBytes = size_t{64} << 10;
  void* volatile const memory = std::malloc(kBytes);
  std::free(memory);
  return memory != nullptr;
}

bool may_run() { return !privileged() && has_memory() && flopinj::handle_forks(); }

}  // namespace

FLOPINJ_EXPORT int InitializeInjection(void) {
  if (!may_run()) return 1;
  const flopinj::NoCancellation whole;
  const flopinj::RecursionGuard guard;
  flopinj::start_session();
  return 1;  // always: whatever became of us, the program's cuInit goes on
}

FLOPINJ_EXPORT int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t)) {
  if (!may_run()) return 0;
  const flopinj::NoCancellation whole;
  return flopinj::attach_nvtx(get_export_table) ? 1 : 0;
}

FLOPINJ_EXPORT int InitializeInjectionNvtx(const void* (*get_export_table)(uint32_t)) {
  return InitializeInjectionNvtx2(get_export_table);
}

FLOPINJ_EXPORT int flopinj_listen(void) {
  if (!may_run()) return 0;
  const flopinj::NoCancellation whole;
  return flopinj::listen_session() ? 1 : 0;
}

FLOPINJ_EXPORT size_t flopinj_request(const char* request, char* answer, size_t size) {
  const auto put = [answer, size](std::string_view text) {
    if (answer == nullptr || size == 0) return text.size();
    answer[text.copy(answer, size - 1)] = 0;
    return text.size();
  };
  if (!may_run()) return put("error there is no memory, or the program is a set-user-id one\n");
  const flopinj::NoCancellation whole;
  try {
    return put(flopinj::answer_program(request != nullptr ? request : ""));
  } catch (const std::exception&) {
    return put("error there is no memory\n");
  }
}

FLOPINJ_EXPORT const FlopinjOperators* flopinj_operators(void) {
  if (!may_run()) return nullptr;
  const flopinj::NoCancellation whole;
  return flopinj::operators();
}

namespace {

bool is_preloaded(const char* path) {
  const char* preload = std::getenv("LD_PRELOAD");
  if (preload == nullptr) return false;
  const char* slash = std::strrchr(path, '/');
  return std::strstr(preload, slash != nullptr ? slash + 1 : path) != nullptr;
}

__attribute__((constructor)) void set_variables_when_preloaded() {
  if (privileged()) return;
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&InitializeInjection), &self) == 0 ||
      self.dli_fname == nullptr)
    return;
  if (!is_preloaded(self.dli_fname)) return;
  char path[PATH_MAX];
  if (realpath(self.dli_fname, path) == nullptr) return;
  setenv("CUDA_INJECTION64_PATH", path, 0);
  setenv("NVTX_INJECTION64_PATH", path, 0);
}

}  // namespace
