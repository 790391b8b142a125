// What the sinks share: an owned file descriptor, error texts, and protection from the signals that
// writing can raise.
#pragma once
#include <csignal>
#include <string>

namespace flopinj {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }

  int get() const { return fd_; }
  void reset(int fd) {
    close();
    fd_ = fd;
  }
  bool close() noexcept;  // false: the kernel reported a write error; errno says which

 private:
  int fd_;
};

// SIGPIPE and SIGXFSZ raised by this thread while it lives are taken back; those of others stay.
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
