#include <collector/trace/sink/descriptor_sink.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <thread>

#include "own_user.h"

namespace flopinj {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRetryPeriod = std::chrono::milliseconds(10);

}  // namespace

bool DescriptorSink::fail(const std::string& why) {
  if (error_.empty()) error_ = why;
  return false;
}

bool DescriptorSink::usable(bool named) {
  const Descriptor::Names names = fd_.names();
  if (names == Descriptor::Names::kForeign)
    return fail("the program has closed the descriptor of the trace");
  return !named || names == Descriptor::Names::kOurs || fail("somebody has removed the file");
}

bool DescriptorSink::close() {
  if (!fd_.close()) return fail(errno_text(errno));
  return error_.empty();
}

// What is no regular file of ours has no offsets.
int FileSink::write_all(std::string_view& rest, uint64_t offset) {
  const WriteSignalGuard guard;
  while (!rest.empty()) {
    const ssize_t written =
        exclusive_ ? ::pwrite(fd_.get(), rest.data(), rest.size(), static_cast<off_t>(offset))
                   : ::write(fd_.get(), rest.data(), rest.size());
    if (written > 0) {
      rest.remove_prefix(static_cast<size_t>(written));
      offset += static_cast<uint64_t>(written);
    } else if (written == 0 || errno != EINTR) {
      return written < 0 ? errno : EIO;
    }
  }
  return 0;
}

bool FileSink::write(std::string_view packets) {
  if (!error_.empty() || !usable(exclusive_)) return false;
  std::string_view rest = packets;
  if (const int error = write_all(rest, bytes_); error != 0) {
    // Best effort: where it fails the reader meets a torn tail, which it knows how to handle.
    if (exclusive_ && rest.size() < packets.size()) cut_back(bytes_);
    return fail(errno_text(error));
  }
  bytes_ += packets.size();
  return true;
}

bool FileSink::cut_back(uint64_t size) {
  return usable(exclusive_) && ::ftruncate(fd_.get(), static_cast<off_t>(size)) == 0;
}

bool FileSink::write_last(uint64_t offset, std::string_view packets) {
  if (error_.empty() || !exclusive_ || offset > bytes_ || !cut_back(offset)) return false;
  bytes_ = offset;
  std::string_view rest = packets;
  if (write_all(rest, offset) != 0) {
    cut_back(offset);
    return false;
  }
  bytes_ += packets.size();
  return true;
}

bool FileSink::rewrite(uint64_t offset, std::string_view bytes) {
  if (!error_.empty() || !exclusive_ || offset + bytes.size() > bytes_) return false;
  if (!usable(exclusive_)) return false;
  const int error = write_all(bytes, offset);
  return error == 0 || fail(errno_text(error));
}

// A FIFO has no event for "a reader came", so it is tried again and again, on the writer thread.
bool StreamSink::open_fifo() {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms_);
  for (;;) {
    const int fd = ::open(target_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
      fd_.reset(fd);
      struct stat status {};
      if (::fstat(fd_.get(), &status) == 0 && S_ISFIFO(status.st_mode) && may_write_to(status))
        return true;
      fd_.reset(-1);
      return fail("it has been replaced by something of another kind, or of another user");
    }
    if (errno != ENXIO && errno != EINTR) return fail(errno_text(errno));
    if (Clock::now() >= deadline)
      return fail("no reader within " + std::to_string(timeout_ms_) +
                  " ms; start the reader of the FIFO first");
    std::this_thread::sleep_for(kRetryPeriod);
  }
}

bool StreamSink::wait_writable() {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms_);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd p{fd_.get(), POLLOUT, 0};
    const int ready = ::poll(&p, 1, static_cast<int>(std::max<long>(left, 0)));
    if (ready > 0) return true;  // an error or hang-up shows at the write
    if (ready < 0 && errno != EINTR) return fail(errno_text(errno));
    if (ready == 0)
      return fail("the reader took nothing for " + std::to_string(timeout_ms_) + " ms");
  }
}

long StreamSink::write_some(std::string_view bytes) {
  if (kind_ == Kind::kSocket)
    return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // A pipe that polls as writable takes PIPE_BUF bytes without blocking, whatever its mode.
  if (kind_ == Kind::kShared) bytes = bytes.substr(0, PIPE_BUF);
  return ::write(fd_.get(), bytes.data(), bytes.size());
}

bool StreamSink::write(std::string_view packets) {
  if (!error_.empty()) return false;
  if (kind_ == Kind::kFifo && fd_.get() < 0 && !open_fifo()) return false;
  const WriteSignalGuard guard;
  while (!packets.empty()) {
    if (!wait_writable() || !usable()) return false;
    const long written = write_some(packets);
    if (written > 0) {
      packets.remove_prefix(static_cast<size_t>(written));
      bytes_ += static_cast<uint64_t>(written);
    } else if (written < 0 && (errno == EPIPE || errno == ECONNRESET)) {
      return fail("the reader has gone");
    } else if (written < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) {
      return fail(errno_text(errno));
    }
  }
  return true;
}

}  // namespace flopinj
