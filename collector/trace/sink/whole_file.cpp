#include <collector/trace/sink/descriptor.h>
#include <collector/trace/sink/whole_file.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace flopinj {
namespace {

// 0, or errno's. A disk that is full takes a part, then nothing.
int write_all(const Descriptor& fd, std::string_view text) {
  while (!text.empty()) {
    if (fd.names() != Descriptor::Names::kOurs) return EBADF;
    const ssize_t count = ::write(fd.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : ENOSPC;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

}  // namespace

int WholeFile::write(std::string_view text) {
  const WriteSignalGuard no_signals;
  const std::string beside = name + "." + std::to_string(getpid());
  unlink(beside.c_str());  // of an earlier process
  Descriptor fd(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (fd.get() < 0) return errno;
  struct stat status {};
  int error = fstat(fd.get(), &status) == 0 ? write_all(fd, text) : errno;
  if (!fd.close() && error == 0) error = errno;
  if (error == 0 && std::rename(beside.c_str(), name.c_str()) != 0) error = errno;
  if (error == 0) {
    device = status.st_dev;
    inode = status.st_ino;
  } else {
    unlink(beside.c_str());
  }
  return error;
}

void WholeFile::remove() const {
  struct stat status {};
  if (lstat(name.c_str(), &status) == 0 && status.st_dev == device && status.st_ino == inode)
    unlink(name.c_str());
}

}  // namespace flopinj
