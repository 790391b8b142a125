#include <collector/trace/sink/descriptor.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>

namespace flopinj {

bool Descriptor::close() noexcept {
  if (fd_ < 0) return true;
  const int result = ::close(fd_);
  fd_ = -1;
  return result == 0 || errno == EINTR;  // Linux frees the descriptor in any case
}

WriteSignalGuard::WriteSignalGuard() {
  sigset_t pending;
  sigemptyset(&ours_);
  sigemptyset(&pending);
  sigpending(&pending);
  for (const int signal : {SIGPIPE, SIGXFSZ})
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
