// Where packets go: a file, standard output, a FIFO or a Unix socket. Used only by the
// writer thread.
//
// A sink that fails once is finished: it says why, and every later write is refused. It never
// raises a signal (SIGPIPE, SIGXFSZ) on any thread and, a regular file aside, never waits longer
// than its time limit without progress, so a reader that stopped reading cannot hold up the
// program's exit.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace flopinj {

class Sink {
 public:
  virtual ~Sink() = default;
  // `packets` is one framed packet or several. False when not all of it could be written; a regular
  // file is then cut back to where it was before, so that it ends with a whole packet.
  virtual bool write(std::string_view packets) = 0;
  // True where bytes that were written can be replaced: a regular file that only we use.
  virtual bool rewritable() const { return false; }
  // After write() has failed: last packets at `offset`, where a write that succeeded ended; bytes
  // behind it are cut off. False where there is no room for them, or the sink is no regular file of
  // ours. Then an earlier offset may be tried.
  virtual bool write_last(uint64_t /*offset*/, std::string_view /*packets*/) { return false; }
  // Replaces bytes at `offset`; as many must have been written there. As write(), but nothing is
  // cut back.
  virtual bool rewrite(uint64_t /*offset*/, std::string_view /*bytes*/) { return false; }
  virtual bool close() = 0;
  virtual const std::string& target() const = 0;  // for messages
  virtual const std::string& error() const = 0;   // empty while it works
  // In a forked child: gives up the descriptor, so that the reader sees the end when the parent
  // closes. Touches nothing else.
  virtual void abandon_after_fork() noexcept {}
  uint64_t bytes_written() const { return bytes_; }

 protected:
  uint64_t bytes_ = 0;
};

struct SinkOptions {
  bool force = false;                 // overwrite an existing regular file
  uint32_t write_timeout_ms = 2'000;  // FIFO, socket, pipe: give up after so long without progress
  // With `force`: a file that was written to since then is kept all the same. Nanoseconds since
  // 1970, by the clock of its file system.
  int64_t keep_from_ns = INT64_MAX;
};

struct OpenedSink {
  std::unique_ptr<Sink> sink;  // null on failure
  std::string error;           // one line that says what to do
  bool exists = false;         // that is the error: a file of that name, which is to be kept
};

// Returns at once. "-": standard output (its descriptor is duplicated now, so that the program may
// close or redirect its own later; a terminal is refused). "unix:PATH": connects to a stream
// socket. An existing FIFO is opened by the first write, which waits for a reader up to the time
// limit and fails without one. Anything else is a regular file, created with mode 0600 & ~umask;
// one that exists is an error unless `force`, and then still one if it is a link or has another
// name, or another process is writing its trace to it: an open file is locked (flock). Nothing is
// written to another user's file, FIFO or socket, root's FIFO and socket aside.
OpenedSink open_sink(const std::string& name, const SinkOptions&);

}  // namespace flopinj
