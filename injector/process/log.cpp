#include <injector/process/log.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace flopinj::log {
namespace {

// Leaked on purpose: we may be asked to speak after static destructors have run.
spdlog::logger& logger() {
  static auto* instance = [] {
    auto* made = new spdlog::logger("flopinj", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("flopinj: %v");
    made->set_level(spdlog::level::warn);
    made->set_error_handler([](const std::string&) {});
    return made;
  }();
  return *instance;
}

void say(spdlog::level::level_enum level, std::string_view line) noexcept {
  try {
    logger().log(level, spdlog::string_view_t(line.data(), line.size()));
  } catch (...) {  // no memory, no stderr: silence is the right failure here
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

void error(std::string_view line) noexcept { say(spdlog::level::err, line); }
void warn(std::string_view line) noexcept { say(spdlog::level::warn, line); }
void info(std::string_view line) noexcept { say(spdlog::level::info, line); }
void debug(std::string_view line) noexcept { say(spdlog::level::debug, line); }

bool debugging() noexcept {
  try {
    return logger().should_log(spdlog::level::debug);
  } catch (...) {
    return false;
  }
}

}  // namespace flopinj::log
