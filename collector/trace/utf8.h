// The format's `string` fields must be valid UTF-8, or readers refuse the packet; what we put there
// comes from the program (command line, names) and may be anything.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace flopinj {

// `text` cut at `max_bytes` (never inside a character), every byte that is not part of valid UTF-8
// replaced by '?'.
std::string to_utf8(std::string_view text, size_t max_bytes);

}  // namespace flopinj
