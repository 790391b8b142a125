// Our voice on the user's stderr: one line per event, "flopinj: ..." in front. Not for the launch
// path.
//
// A line is one write(2) that can neither signal, block nor be a point of cancellation. It is
// dropped where stderr would not take it at once (a full pipe, a stopped terminal), or has no
// reader. Memory is needed once, at the first line or level: a line is put together on the stack,
// and cut where it is longer than PIPE_BUF bytes.
#pragma once
#include <collector/options/settings.h>

#include <initializer_list>
#include <string_view>

namespace flopinj::log {

using Parts = std::initializer_list<std::string_view>;

void set_level(LogLevel) noexcept;
// `line` with the "flopinj: " in front and a new line behind. Async-signal-safe.
void error_in_handler(std::string_view line) noexcept;
void note(Parts) noexcept;  // at every level but off
void error(Parts) noexcept;
void warn(Parts) noexcept;
void info(Parts) noexcept;
void debug(Parts) noexcept;
inline void note(std::string_view line) noexcept { note({line}); }
inline void error(std::string_view line) noexcept { error({line}); }
inline void warn(std::string_view line) noexcept { warn({line}); }
inline void info(std::string_view line) noexcept { info({line}); }
inline void debug(std::string_view line) noexcept { debug({line}); }
bool debugging() noexcept;  // a line for debug() is worth its making

}  // namespace flopinj::log
