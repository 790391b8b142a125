// Our voice on the user's stderr: one line per event, "flopinj: ..." in front. Never throws, never
// blocks on a lock that the program holds. Not for the launch path.
#pragma once
#include <collector/options/settings.h>

#include <string>
#include <string_view>

namespace flopinj::log {

void set_level(LogLevel) noexcept;
void error(std::string_view line) noexcept;
void warn(std::string_view line) noexcept;
void info(std::string_view line) noexcept;
void debug(std::string_view line) noexcept;
bool debugging() noexcept;  // a line for debug() is worth its making

}  // namespace flopinj::log
