// `flopinj top`: the report of a recording on a terminal, again and again.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>
#include <thread>

#include "process.h"
#include "running/live.h"

namespace flopinj {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

int rows_of_terminal() {
  winsize size{};
  return ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 0;
}

// As many lines as the terminal has, the cursor at the end of the last.
std::string fitting(const std::string& text, int rows) {
  std::istringstream lines(text);
  std::string out;
  int count = 0;
  for (std::string line; std::getline(lines, line) && (rows == 0 || ++count < rows);)
    out += line + "\033[K\n";
  return out;
}

void draw(const LiveReport& live, pid_t pid, bool screen) {
  const std::string text =
      status_text(pid, live.status) + "\n" + (live.text.empty() ? live.why_none + "\n" : live.text);
  if (screen)
    std::cout << "\033[H" << fitting(text, rows_of_terminal()) << "\033[J" << std::flush;
  else
    std::cout << text << std::flush;
}

// Reading a long trace again and again must not take a core.
void pause_after(double work_s, double every_s) {
  constexpr double kMostShare = 0.2;
  std::this_thread::sleep_for(Seconds(std::max(every_s - work_s, work_s / kMostShare)));
}

}  // namespace

int top(const Options& options) {
  const pid_t pid = chosen(options);
  bool drawn = false;
  if (options.json) {
    const LiveReport live = live_report(pid, {"--format", "json"});
    Json both{{"status", live.status}, {"report", nullptr}};
    if (!live.text.empty()) both["report"] = Json::parse(live.text);
    std::cout << json_line(both) << std::flush;
    return kExitOk;
  }
  const bool screen = !options.once && isatty(1) == 1;
  const std::vector<std::string> form =
      screen ? std::vector<std::string>{"--color", "always"} : std::vector<std::string>{};
  if (screen) std::cout << "\033[2J";
  for (;;) {
    const auto began = Clock::now();
    try {
      draw(live_report(pid, form), pid, screen);
      drawn = true;
    } catch (const std::exception&) {
      if (!drawn || process_runs(pid)) throw;
      std::cout << process_name(pid) << " has ended\n" << std::flush;
      return kExitOk;
    }
    if (options.once) return kExitOk;
    pause_after(Seconds(Clock::now() - began).count(), options.every_s);
  }
}

}  // namespace flopinj
