#include <collector/trace/sink/descriptor.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>

namespace flopinj {
namespace {

// From 512 on, in the upper half where fewer files may be open. The kernel's table of descriptors
// grows to that size: 4 KiB.
int moved_up(int fd) noexcept {
  constexpr rlim_t kFrom = 512;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return fd;
  const auto from = static_cast<int>(std::min(kFrom, limit.rlim_cur / 2));
  if (fd >= from) return fd;
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, from);
  if (high < 0) return fd;
  ::close(fd);
  return high;
}

}  // namespace

void Descriptor::reset(int fd) {
  close();
  if (fd < 0) return;
  fd_ = moved_up(fd);
  struct stat status {};
  if (fstat(fd_, &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

Descriptor::Names Descriptor::names() const noexcept {
  struct stat status {};
  if (fd_ < 0 || fstat(fd_, &status) != 0) return Names::kForeign;
  if (status.st_dev != device_ || status.st_ino != inode_) return Names::kForeign;
  return S_ISREG(status.st_mode) && status.st_nlink == 0 ? Names::kUnlinked : Names::kOurs;
}

bool Descriptor::close() noexcept {
  if (fd_ < 0) return true;
  if (names() == Names::kForeign) {
    fd_ = -1;
    return true;
  }
  const int result = ::close(fd_);
  fd_ = -1;
  return result == 0 || errno == EINTR;  // Linux frees the descriptor in any case
}

WriteSignalGuard::WriteSignalGuard() {
  sigset_t pending;
  sigemptyset(&ours_);
  sigemptyset(&pending);
  sigpending(&pending);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGTTOU})
    if (sigismember(&pending, signal) == 0) sigaddset(&ours_, signal);
  pthread_sigmask(SIG_BLOCK, &ours_, &previous_);
}

WriteSignalGuard::~WriteSignalGuard() {
  const int error = errno;
  const timespec now{0, 0};
  while (sigtimedwait(&ours_, nullptr, &now) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  errno = error;
}

std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace flopinj
