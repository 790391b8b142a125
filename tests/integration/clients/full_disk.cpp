// Preloaded into a program: the disk that traces are on has room for FULL_DISK_BYTES, and is full
// then, as for a file that is alone on a small file system: a write takes what fits, and the next
// one fails.
#include <dlfcn.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace {

ssize_t write_what_fits(int fd, const void* bytes, size_t count, off_t offset) {
  using Function = ssize_t (*)(int, const void*, size_t, off_t);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pwrite"));
  static const char* const text = std::getenv("FULL_DISK_BYTES");
  static const off_t room = text != nullptr ? std::atol(text) : 0;
  if (offset >= room) {
    errno = ENOSPC;
    return -1;
  }
  return next(fd, bytes, std::min(count, static_cast<size_t>(room - offset)), offset);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* bytes, size_t count,
                                                      off_t offset) {
  return write_what_fits(fd, bytes, count, offset);
}

__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void* bytes, size_t count,
                                                        off64_t offset) {
  return write_what_fits(fd, bytes, count, offset);
}
}
