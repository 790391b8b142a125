// Our voice on the user's stderr: one line per event, "flopinj: ..." in front. Not for the launch
// path.
//
// A line is one write(2) that can neither signal, block nor be a point of cancellation. Where
// stderr would take no line at once (a full pipe, a stopped terminal), or nobody reads it, the line
// is dropped. Memory is needed once, at the first line or level: the parts of a line are put
// together on the stack, and what does not fit in PIPE_BUF bytes is cut.
#pragma once
#include <collector/options/settings.h>

#include <initializer_list>
#include <string_view>

namespace flopinj::log {

using Parts = std::initializer_list<std::string_view>;

void set_level(LogLevel) noexcept;
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
