#include <collector/trace/sink/descriptor_sink.h>

#include <cerrno>

namespace flopinj {

bool DescriptorSink::fail(const std::string& why) {
  if (error_.empty()) error_ = why;
  return false;
}

bool DescriptorSink::usable() {
  return fd_.names() != Descriptor::Names::kForeign ||
         fail("the program has closed the descriptor of the trace");
}

bool DescriptorSink::close() {
  if (!fd_.close()) return fail(errno_text(errno));
  return error_.empty();
}

}  // namespace flopinj
