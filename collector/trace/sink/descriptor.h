// What the sinks share: an owned file descriptor, error texts, and protection from the signals that
// writing can raise.
//
// The number of a descriptor is ours only as long as the program does not close it: a program that
// closes every descriptor (daemons do) and opens its own file gets our number for it. So a
// descriptor remembers which file it was opened for, has a high number, which closing "3, 4, 5"
// does not meet and opening does not give out, and is looked at before each use.
#pragma once
#include <sys/types.h>

#include <csignal>
#include <string>

namespace flopinj {

class Descriptor {
 public:
  // Takes `fd`, and moves it to a high number where the limit of open files allows.
  explicit Descriptor(int fd = -1) { reset(fd); }
  Descriptor(Descriptor&& other) noexcept
      : fd_(other.fd_), device_(other.device_), inode_(other.inode_) {
    other.fd_ = -1;
  }
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }

  int get() const { return fd_; }
  void reset(int fd);
  // What the number names now: the file, pipe or socket that was taken; that file, whose last name
  // was removed; something else or nothing.
  enum class Names { kOurs, kUnlinked, kForeign };
  Names names() const noexcept;
  // False: the kernel reported a write error; errno says which. A number that is not ours any more
  // is left as it is.
  bool close() noexcept;

 private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// SIGPIPE and SIGXFSZ raised by this thread while it lives are taken back; those of others stay. A
// write to the terminal from the background (SIGTTOU) does not stop the program.
class WriteSignalGuard {
 public:
  WriteSignalGuard();
  ~WriteSignalGuard();
  WriteSignalGuard(const WriteSignalGuard&) = delete;
  WriteSignalGuard& operator=(const WriteSignalGuard&) = delete;

 private:
  sigset_t previous_, ours_;  // ours: not pending before, so what is pending after was raised here
};

// "No space left on device": strerror for any thread.
std::string errno_text(int error);

}  // namespace flopinj
