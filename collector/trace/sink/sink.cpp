#include <collector/trace/sink/descriptor_sink.h>
#include <collector/trace/sink/sink.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "own_user.h"

namespace flopinj {
namespace {

constexpr std::string_view kSocketPrefix = "unix:";

OpenedSink failed(const std::string& what) { return {nullptr, what, false}; }

OpenedSink stream(const std::string& target, Descriptor fd, StreamSink::Kind kind,
                  const SinkOptions& options) {
  return {std::make_unique<StreamSink>(target, std::move(fd), kind, options.write_timeout_ms), {}};
}

OpenedSink open_stdout(const SinkOptions& options) {
  Descriptor fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  struct stat status {};
  if (fd.get() < 0 || ::fstat(fd.get(), &status) != 0)
    return failed("standard output is not open (" + errno_text(errno) + "); name a file instead");
  if (::isatty(fd.get()) != 0)
    return failed("standard output is a terminal; redirect it, or name a file");
  const std::string target = "standard output";
  if (S_ISSOCK(status.st_mode))
    return stream(target, std::move(fd), StreamSink::Kind::kSocket, options);
  if (S_ISFIFO(status.st_mode))
    return stream(target, std::move(fd), StreamSink::Kind::kShared, options);
  return {std::make_unique<FileSink>(target, std::move(fd), false), {}};
}

// Another user's process gets no trace of ours, root's aside.
bool peer_is_trusted(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         is_own_user_or_root(peer.uid);
}

OpenedSink open_socket(const std::string& name, const SinkOptions& options) {
  const std::string path = name.substr(kSocketPrefix.size());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    return failed(name + ": a socket path has 1 to " +
                  std::to_string(sizeof(address.sun_path) - 1) + " characters");
  std::copy(path.begin(), path.end(), address.sun_path);
  Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0 ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return failed("cannot connect to " + path + ": " + errno_text(errno) +
                  "; start the reader that listens there first");
  if (!peer_is_trusted(fd.get()))
    return failed("the reader at " + path + " belongs to another user; it gets nothing");
  return stream(name, std::move(fd), StreamSink::Kind::kSocket, options);
}

OpenedSink cannot_write(const std::string& name) {
  if (errno == EEXIST)
    return {nullptr, name + " exists; choose another name, or overwrite it with --force", true};
  if (errno == ELOOP) return failed(name + " is a symbolic link; name the file itself");
  const char* hint = errno == ENOENT ? "; create the directory first" : "; choose another place";
  return failed("cannot write " + name + ": " + errno_text(errno) + hint);
}

// A trace has command lines and names of the program: it is its owner's to show.
constexpr mode_t kMode = 0600;

// Where the file system knows no locks no process has one.
bool lock(const Descriptor& fd) {
  return ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

OpenedSink foreign(const std::string& name) {
  return failed(name + " belongs to another user, who could read the trace; choose another name");
}

OpenedSink in_use(const std::string& name) {
  return {nullptr, name + " is being written by another process; choose another name", true};
}

OpenedSink open_new_file(const std::string& name) {
  Descriptor fd(::open(name.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_CREAT | O_EXCL, kMode));
  if (fd.get() < 0) return cannot_write(name);
  if (!lock(fd)) return in_use(name);
  return {std::make_unique<FileSink>(name, std::move(fd), true), {}};
}

int64_t changed_ns(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

// A regular file only with `force`, and only where it is surely the one that the user means: in a
// directory that others write to, a link may lead to any file of the user's, and a file may be one
// of theirs. Opening does not wait: it may have become a FIFO.
OpenedSink open_existing_file(const std::string& name, bool regular, const SinkOptions& options) {
  const int links = regular ? O_NOFOLLOW : 0;
  Descriptor fd(::open(name.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | links));
  if (fd.get() < 0) return cannot_write(name);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || S_ISREG(status.st_mode) != regular ||
      S_ISFIFO(status.st_mode))
    return failed(name + " has just been replaced; choose another place");
  if (!may_write_to(status)) return foreign(name);
  if (regular && status.st_nlink > 1)
    return failed(name + " has other names (hard links); choose another name");
  if (regular && changed_ns(status) >= options.keep_from_ns)
    return {nullptr, name + " is of this run", true};
  if (regular && !lock(fd)) return in_use(name);
  if (regular && ::ftruncate(fd.get(), 0) != 0) return cannot_write(name);
  ::fcntl(fd.get(), F_SETFL, 0);  // a device waits from here on
  return {std::make_unique<FileSink>(name, std::move(fd), regular), {}};
}

}  // namespace

OpenedSink open_sink(const std::string& name, const SinkOptions& options) {
  if (name.empty()) return failed("the output name is empty; give a file name");
  if (name == "-") return open_stdout(options);
  if (name.compare(0, kSocketPrefix.size(), kSocketPrefix) == 0) return open_socket(name, options);
  struct stat status {};
  if (::stat(name.c_str(), &status) != 0) return open_new_file(name);
  if (S_ISFIFO(status.st_mode) && !may_write_to(status)) return foreign(name);
  if (S_ISFIFO(status.st_mode)) return stream(name, Descriptor(), StreamSink::Kind::kFifo, options);
  if (S_ISDIR(status.st_mode)) return failed(name + " is a directory; name a file in it");
  if (S_ISSOCK(status.st_mode))
    return failed(name + " is a socket; write unix:" + name + " to connect to it");
  if (S_ISBLK(status.st_mode)) return failed(name + " is a block device; name a file");
  if (S_ISREG(status.st_mode) && !options.force) {
    errno = EEXIST;
    return cannot_write(name);
  }
  return open_existing_file(name, S_ISREG(status.st_mode), options);
}

}  // namespace flopinj
