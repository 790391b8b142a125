#include <collector/trace/sink/descriptor_sink.h>

#include <cerrno>

namespace flopinj {

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

}  // namespace flopinj
