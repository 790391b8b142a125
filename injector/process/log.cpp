#include <collector/trace/sink/descriptor.h>
#include <injector/process/log.h>
#include <injector/process/this_thread.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>

namespace flopinj::log {
namespace {

// As much as a pipe takes in one piece, and all of it where poll() calls it writable.
using Line = std::array<char, PIPE_BUF>;

size_t append(Line& line, size_t used, std::string_view part) {
  const size_t fits = std::min(part.size(), line.size() - used);
  std::copy_n(part.data(), fits, line.data() + used);
  return used + fits;
}

// The least of the levels that are said.
std::atomic<LogLevel> g_level{LogLevel::kWarn};

bool is_said(LogLevel level) noexcept { return level <= g_level.load(std::memory_order_relaxed); }

void say(LogLevel level, Parts parts) noexcept {
  if (!is_said(level)) return;
  Line line;
  size_t used = append(line, 0, "flopinj: ");
  for (const std::string_view part : parts) used = append(line, used, part);
  used = std::min(used, line.size() - 1);
  // A name that the user gave us may hold what a terminal takes for a command.
  for (size_t i = 0; i < used; ++i) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(line[at]); };
    const bool c1 = i != 0 && byte(i - 1) == 0xC2 && byte(i) >= 0x80 && byte(i) < 0xA0;
    if (byte(i) < 0x20 || byte(i) == 0x7f || c1) line[i] = '?';
    if (c1) line[i - 1] = '?';
  }
  line[used++] = '\n';
  const NoCancellation whole;
  const WriteSignalGuard guard;
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0) [[maybe_unused]]
    const ssize_t written = ::write(STDERR_FILENO, line.data(), used);
}

}  // namespace

void set_level(LogLevel level) noexcept { g_level.store(level, std::memory_order_relaxed); }

void note(Parts line) noexcept { say(LogLevel::kError, line); }
void error(Parts line) noexcept { say(LogLevel::kError, line); }
void warn(Parts line) noexcept { say(LogLevel::kWarn, line); }
void info(Parts line) noexcept { say(LogLevel::kInfo, line); }
void debug(Parts line) noexcept { say(LogLevel::kDebug, line); }

bool debugging() noexcept { return is_said(LogLevel::kDebug); }

}  // namespace flopinj::log
