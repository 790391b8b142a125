#include <collector/trace/sink/file_sink.h>
#include <unistd.h>

#include <cerrno>

namespace flopinj {

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
    if (exclusive_ && rest.size() < packets.size() && usable(exclusive_)) [[maybe_unused]]
      const int cut = ::ftruncate(fd_.get(), static_cast<off_t>(bytes_));
    return fail(errno_text(error));
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

}  // namespace flopinj
