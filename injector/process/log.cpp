#include <collector/trace/sink/descriptor.h>
#include <injector/process/log.h>
#include <injector/process/this_thread.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <memory>

#define SPDLOG_NO_THREAD_ID  // a variable of each thread, for what no line has
#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>

namespace flopinj::log {
namespace {

// As much as a pipe takes in one piece, and all of it where poll() calls it writable.
using Line = std::array<char, PIPE_BUF>;

size_t append(Line& line, size_t used, std::string_view part) {
  const size_t fits = std::min(part.size(), line.size() - used);
  std::copy_n(part.data(), fits, line.data() + used);
  return used + fits;
}

// A name that the user gave us may hold what a terminal takes for a command: one byte below a
// space, or two of UTF-8 for U+0080 to U+009F.
void hide_controls(Line& line, size_t used) {
  for (size_t i = 0; i < used; ++i) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(line[at]); };
    const bool c1 = i != 0 && byte(i - 1) == 0xC2 && byte(i) >= 0x80 && byte(i) < 0xA0;
    if (byte(i) < 0x20 || byte(i) == 0x7f || c1) line[i] = '?';
    if (c1) line[i - 1] = '?';
  }
}

void write_line(std::string_view line) noexcept {
  const NoCancellation whole;
  const WriteSignalGuard guard;
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0) [[maybe_unused]]
    const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

class StderrSink : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& message) override {
    Line line;
    size_t used = append(line, 0, "flopinj: ");
    used = append(line, used, {message.payload.data(), message.payload.size()});
    used = std::min(used, line.size() - 1);
    hide_controls(line, used);
    line[used++] = '\n';
    write_line({line.data(), used});
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

// Never destroyed: we may be asked to speak after static destructors have run. No static object of
// a function, which is a lock that a forked child might wait for: two threads may both make one.
constinit std::atomic<spdlog::logger*> g_logger{nullptr};

spdlog::logger& logger() {
  spdlog::logger* first = g_logger.load(std::memory_order_acquire);
  if (first != nullptr) return *first;
  auto made = std::make_unique<spdlog::logger>("flopinj", std::make_shared<StderrSink>());
  made->set_level(spdlog::level::warn);
  made->set_error_handler([](const std::string&) {});
  return g_logger.compare_exchange_strong(first, made.get()) ? *made.release() : *first;
}

void say(spdlog::level::level_enum level, Parts parts) noexcept {
  try {
    spdlog::logger& to = logger();
    if (!to.should_log(level)) return;
    Line line;
    size_t used = 0;
    for (const std::string_view part : parts) used = append(line, used, part);
    to.log(level, spdlog::string_view_t(line.data(), used));
  } catch (...) {  // no memory for the logger: silence is the right failure here
  }
}

}  // namespace

void set_level(LogLevel level) noexcept {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::off, spdlog::level::err,
                                                   spdlog::level::warn, spdlog::level::info,
                                                   spdlog::level::debug};
  try {
    logger().set_level(kLevels[static_cast<size_t>(level)]);
  } catch (...) {
  }
}

void error_in_handler(std::string_view line) noexcept {
  const spdlog::logger* const made = g_logger.load(std::memory_order_acquire);
  if (made == nullptr || made->should_log(spdlog::level::err)) write_line(line);
}

void note(Parts line) noexcept { say(spdlog::level::critical, line); }
void error(Parts line) noexcept { say(spdlog::level::err, line); }
void warn(Parts line) noexcept { say(spdlog::level::warn, line); }
void info(Parts line) noexcept { say(spdlog::level::info, line); }
void debug(Parts line) noexcept { say(spdlog::level::debug, line); }

bool debugging() noexcept {
  try {
    return logger().should_log(spdlog::level::debug);
  } catch (...) {
    return false;
  }
}

}  // namespace flopinj::log
