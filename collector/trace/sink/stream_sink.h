// Something with a reader at the other end: it may be slow, stop or leave.
#pragma once
#include <collector/trace/sink/descriptor_sink.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace flopinj {

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
