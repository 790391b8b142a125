// A sink that owns a file descriptor, and remembers its first error.
#pragma once
#include <collector/trace/sink/descriptor.h>
#include <collector/trace/sink/sink.h>

#include <string>
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

}  // namespace flopinj
