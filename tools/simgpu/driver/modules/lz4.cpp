#include "driver/modules/lz4.h"

#include <algorithm>
#include <cstdint>

namespace simgpu {
namespace {

constexpr size_t kLeastMatch = 4;

uint8_t byte(std::string_view from, size_t at) { return static_cast<uint8_t>(from[at]); }

// A length whose four bits are full goes on in bytes, up to one that is not 255.
bool read_length(std::string_view from, size_t& at, size_t& length) {
  if (length != 15) return true;
  while (at < from.size()) {
    const uint8_t more = byte(from, at++);
    length += more;
    if (more != 255) return true;
  }
  return false;
}

}  // namespace

bool unpack_lz4(std::string_view from, std::string& to) {
  size_t at = 0, written = 0;
  while (at < from.size()) {
    const uint8_t token = byte(from, at++);
    size_t literals = token >> 4;
    if (!read_length(from, at, literals) || literals > from.size() - at ||
        literals > to.size() - written)
      return false;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at), literals,
                to.begin() + static_cast<std::ptrdiff_t>(written));
    at += literals;
    written += literals;
    if (at == from.size()) break;  // the last sequence has literals only
    if (from.size() - at < 2) return false;
    const size_t back = byte(from, at) | static_cast<size_t>(byte(from, at + 1)) << 8;
    at += 2;
    size_t match = token & 15;
    if (!read_length(from, at, match)) return false;
    match += kLeastMatch;
    if (back == 0 || back > written || match > to.size() - written) return false;
    for (; match > 0; --match, ++written) to[written] = to[written - back];  // may overlap
  }
  return written == to.size();
}

}  // namespace simgpu
