// A regular file or a character device: written to until it is done.
#pragma once
#include <collector/trace/sink/descriptor_sink.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace flopinj {

class FileSink : public DescriptorSink {
 public:
  // `exclusive`: no other process writes to it: it may be cut back after a partial write.
  FileSink(std::string target, Descriptor fd, bool exclusive)
      : DescriptorSink(std::move(target), std::move(fd)), exclusive_(exclusive) {}
  bool write(std::string_view packets) override;
  bool rewritable() const override { return exclusive_; }
  bool rewrite(uint64_t offset, std::string_view bytes) override;

 private:
  // 0, or the error; `rest` is what is left to write.
  int write_all(std::string_view& rest, uint64_t offset);

  bool exclusive_;
};

}  // namespace flopinj
