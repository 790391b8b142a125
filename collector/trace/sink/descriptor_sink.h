// Sinks that own a file descriptor, and remember their first error.
#pragma once
#include <collector/trace/sink/descriptor.h>
#include <collector/trace/sink/sink.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace flopinj {

class DescriptorSink : public Sink {
 public:
  DescriptorSink(std::string target, Descriptor fd)
      : target_(std::move(target)), fd_(std::move(fd)) {}
  bool close() override;
  const std::string& target() const override { return target_; }
  const std::string& error() const override { return error_; }
  void abandon_after_fork() noexcept override { fd_.close(); }

 protected:
  bool fail(const std::string& why);  // false
  // True where the descriptor is still ours, and its file, where it is one of ours only (`named`),
  // still has a name. Looked at before every write: see descriptor.h.
  bool usable(bool named = false);

  std::string target_;
  Descriptor fd_;
  std::string error_;
};

// A regular file or a character device: written to until it is done.
class FileSink : public DescriptorSink {
 public:
  // `exclusive`: no other process writes to it: it may be cut back after a partial write.
  FileSink(std::string target, Descriptor fd, bool exclusive)
      : DescriptorSink(std::move(target), std::move(fd)), exclusive_(exclusive) {}
  bool write(std::string_view packets) override;
  bool write_last(uint64_t offset, std::string_view packets) override;
  bool rewritable() const override { return exclusive_; }
  bool rewrite(uint64_t offset, std::string_view bytes) override;

 private:
  // 0, or the error; `rest` is what is left to write.
  int write_all(std::string_view& rest, uint64_t offset);
  bool cut_back(uint64_t size);

  bool exclusive_;
};

// Something with a reader at the other end: it may be slow, stop or leave.
class StreamSink : public DescriptorSink {
 public:
  enum class Kind {
    kFifo,    // opened by the first write; ours, so non-blocking
    kSocket,  // ours, non-blocking
    kShared,  // a duplicate of the program's own descriptor: its blocking mode is the program's
              // business
  };
  StreamSink(std::string target, Descriptor fd, Kind kind, uint32_t timeout_ms)
      : DescriptorSink(std::move(target), std::move(fd)), kind_(kind), timeout_ms_(timeout_ms) {}
  bool write(std::string_view packets) override;

 private:
  bool open_fifo();
  bool wait_writable();
  long write_some(std::string_view bytes);

  Kind kind_;
  uint32_t timeout_ms_;
};

}  // namespace flopinj
