// A CUPTI that counts the callbacks of its subscriber: the first 8 bytes of the file that COUNTED
// names. All else is the simulated one's, which it needs.
#include <cupti.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

CUpti_CallbackFunc subscriber = nullptr;
std::atomic<uint64_t>* count = nullptr;

void CUPTIAPI counted(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                      const void* data) {
  count->fetch_add(1);
  subscriber(user, domain, id, data);
}

std::atomic<uint64_t>* shared_count() {
  const char* const path = std::getenv("COUNTED");
  const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof *count) != 0) std::abort();
  void* const memory = mmap(nullptr, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<std::atomic<uint64_t>*>(memory);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) CUptiResult CUPTIAPI
cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* user) {
  auto* const next =
      reinterpret_cast<decltype(&cuptiSubscribe)>(dlsym(RTLD_NEXT, "cuptiSubscribe"));
  if (count == nullptr) count = shared_count();
  subscriber = callback;
  return next(handle, counted, user);
}
