#include <collector/sinks.h>
#include <unistd.h>

#include <cerrno>

namespace flopinj {

bool DescriptorSink::fail(const std::string& why) {
  if (error_.empty()) error_ = why;
  return false;
}

bool DescriptorSink::close() {
  if (!fd_.close()) return fail(errno_text(errno));
  return error_.empty();
}

bool FileSink::write(std::string_view packets) {
  if (!error_.empty()) return false;
  const WriteSignalGuard guard;
  std::string_view rest = packets;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
    if (written > 0) {
      rest.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    const int error = written < 0 ? errno : EIO;
    // Best effort: where it fails the reader meets a torn tail, which it knows how to handle.
    if (exclusive_ && rest.size() < packets.size()) [[maybe_unused]]
      const int cut = ::ftruncate(fd_.get(), static_cast<off_t>(bytes_));
    return fail(errno_text(error));
  }
  bytes_ += packets.size();
  return true;
}

}  // namespace flopinj
