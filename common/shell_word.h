// Text as one word of a command that a person copies into a POSIX shell.
#pragma once
#include <string>
#include <string_view>

namespace flopinj {

// In single quotes unless it needs none. `also_plain`: characters that stay outside of quotes
// although they mean something to a shell, as "*" does.
inline std::string shell_quoted(std::string_view text, std::string_view also_plain = {}) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  const auto plain = [&](char c) { return kPlain.find(c) != kPlain.npos; };
  const auto special = [&](char c) { return also_plain.find(c) != also_plain.npos; };
  std::string quoted;
  bool open = text.empty(), any = text.empty();
  for (const char c : text) any = any || (!plain(c) && !special(c));
  if (!any) return std::string(text);
  if (open) quoted = "'";
  for (const char c : text) {
    if (open == special(c)) {
      quoted += '\'';
      open = !open;
    }
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return open ? quoted + '\'' : quoted;
}

}  // namespace flopinj
