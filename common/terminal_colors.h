// Colours for whoever looks at a terminal: none where NO_COLOR is set (no-color.org), where TERM is
// dumb, and in files and pipes.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace flopinj {

inline bool shows_colors(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(fd) != 0 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

// A verdict's text, as it is to be written to `fd`.
inline std::string painted_verdict(const std::string& text, bool good, int fd) {
  return shows_colors(fd) ? (good ? "\033[1;32m" : "\033[1;31m") + text + "\033[0m" : text;
}

}  // namespace flopinj
