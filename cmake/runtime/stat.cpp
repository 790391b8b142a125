// Until glibc 2.33 these were no functions of its shared library: headers made calls of another
// name of them. The kernel's structure is the program's, on machines with 64 bits.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static_assert(sizeof(struct stat) == sizeof(struct stat64));

#define FLOPINJ_HIDDEN extern "C" __attribute__((visibility("hidden")))

FLOPINJ_HIDDEN int stat(const char* path, struct stat* result) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, result, 0));
}
FLOPINJ_HIDDEN int lstat(const char* path, struct stat* result) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW));
}
FLOPINJ_HIDDEN int fstat(int file, struct stat* result) noexcept {
  return static_cast<int>(syscall(SYS_fstat, file, result));
}
FLOPINJ_HIDDEN int stat64(const char* path, struct stat64* result) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, result, 0));
}
FLOPINJ_HIDDEN int lstat64(const char* path, struct stat64* result) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW));
}
FLOPINJ_HIDDEN int fstat64(int file, struct stat64* result) noexcept {
  return static_cast<int>(syscall(SYS_fstat, file, result));
}
