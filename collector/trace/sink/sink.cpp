#include <collector/trace/sink/file_sink.h>
#include <collector/trace/sink/sink.h>
#include <collector/trace/sink/stream_sink.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace flopinj {
namespace {

constexpr std::string_view kSocketPrefix = "unix:";

OpenedSink failed(const std::string& what) { return {nullptr, what}; }

OpenedSink open_stdout(const SinkOptions& options) {
  Descriptor fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  struct stat status {};
  if (fd.get() < 0 || ::fstat(fd.get(), &status) != 0)
    return failed("standard output is not open (" + errno_text(errno) + "); name a file instead");
  if (::isatty(fd.get()) != 0)
    return failed("standard output is a terminal; redirect it, or name a file");
  const std::string target = "standard output";
  if (S_ISSOCK(status.st_mode))
    return {std::make_unique<StreamSink>(target, std::move(fd), StreamSink::Kind::kSocket,
                                         options.write_timeout_ms),
            {}};
  if (S_ISFIFO(status.st_mode))
    return {std::make_unique<StreamSink>(target, std::move(fd), StreamSink::Kind::kShared,
                                         options.write_timeout_ms),
            {}};
  return {std::make_unique<FileSink>(target, std::move(fd), false), {}};
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
  return {std::make_unique<StreamSink>(name, std::move(fd), StreamSink::Kind::kSocket,
                                       options.write_timeout_ms),
          {}};
}

OpenedSink open_file(const std::string& name, const SinkOptions& options, bool exists) {
  const int how = exists ? 0 : (options.force ? O_CREAT | O_TRUNC : O_CREAT | O_EXCL);
  const int truncate = exists && options.force ? O_TRUNC : 0;
  Descriptor fd(::open(name.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | how | truncate, 0666));
  if (fd.get() < 0 && errno == EEXIST)
    return failed(name + " exists; choose another name, or overwrite it with --force");
  if (fd.get() < 0) {
    const char* hint = errno == ENOENT ? "; create the directory first" : "; choose another place";
    return failed("cannot write " + name + ": " + errno_text(errno) + hint);
  }
  struct stat status {};
  const bool regular = ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode);
  return {std::make_unique<FileSink>(name, std::move(fd), regular), {}};
}

}  // namespace

OpenedSink open_sink(const std::string& name, const SinkOptions& options) {
  if (name.empty()) return failed("the output name is empty; give a file name");
  if (name == "-") return open_stdout(options);
  if (name.compare(0, kSocketPrefix.size(), kSocketPrefix) == 0) return open_socket(name, options);
  struct stat status {};
  if (::stat(name.c_str(), &status) != 0) return open_file(name, options, false);
  if (S_ISFIFO(status.st_mode))
    return {std::make_unique<StreamSink>(name, Descriptor(), StreamSink::Kind::kFifo,
                                         options.write_timeout_ms),
            {}};
  if (S_ISDIR(status.st_mode)) return failed(name + " is a directory; name a file in it");
  if (S_ISSOCK(status.st_mode))
    return failed(name + " is a socket; write unix:" + name + " to connect to it");
  if (S_ISREG(status.st_mode) && !options.force)
    return failed(name + " exists; choose another name, or overwrite it with --force");
  return open_file(name, options, true);
}

}  // namespace flopinj
