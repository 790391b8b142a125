// Our voice on the user's stderr: one line per event, "flopinj: ..." in front. Never throws, never
// blocks on a lock that the program holds. Not for the launch path.
#pragma once
#include <string>
#include <string_view>

namespace flopinj::log {

enum class Level { kOff, kError, kWarn, kInfo, kDebug };

void set_level(Level) noexcept;
void error(std::string_view line) noexcept;
void warn(std::string_view line) noexcept;
void info(std::string_view line) noexcept;
void debug(std::string_view line) noexcept;

}  // namespace flopinj::log
