#include "reader/foreign.h"

#include <array>
#include <cstring>

#include "reader/decompress.h"

namespace flopinj::reduce {

std::string not_a_trace(Input& input) {
  std::array<uint8_t, 64> head{};
  const size_t size = input.read_at(0, head.data(), head.size());
  size_t at = 0;
  while (at < size && std::strchr(" \t\r\n", head[at]) != nullptr && head[at] != 0) ++at;
  if (at < size && (head[at] == '{' || head[at] == '['))
    return "is JSON, not a trace: give the .pb file that libflopinj.so wrote";
  if (is_compressed(head.data(), size)) return "is compressed twice: decompress it once";
  return "is not a trace of libflopinj.so: no packet with a right check sum in it";
}

std::string other_version(uint32_t format_major) {
  return "has format version " + std::to_string(format_major) + ", this flopreduce reads version " +
         std::to_string(kFormatMajor) + ": use the flopreduce that came with the recorder";
}

}  // namespace flopinj::reduce
