#include <collector/trace/sink/descriptor.h>
#include <injector/process/log.h>
#include <injector/process/this_thread.h>
#include <poll.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

class StderrSink : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& message) override {
    Line line;
    size_t used = append(line, 0, "flopinj: ");
    used = append(line, used, {message.payload.data(), message.payload.size()});
    used = std::min(used, line.size() - 1);
    // A name that the user gave us may hold what a terminal takes for a command.
    const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    std::replace_if(line.data(), line.data() + used, control, '?');
    line[used++] = '\n';
    const NoCancellation whole;
    const WriteSignalGuard guard;
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0) [[maybe_unused]]
      const ssize_t written = ::write(STDERR_FILENO, line.data(), used);
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

// Leaked on purpose: we may be asked to speak after static destructors have run.
spdlog::logger& logger() {
  static auto* instance = [] {
    auto* made = new spdlog::logger("flopinj", std::make_shared<StderrSink>());
    made->set_level(spdlog::level::warn);
    made->set_error_handler([](const std::string&) {});
    return made;
  }();
  return *instance;
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
