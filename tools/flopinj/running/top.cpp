// `flopinj top`: the report of a recording on a terminal, again and again, with keys.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <thread>

#include "process.h"
#include "running/control_client.h"
#include "running/live.h"

namespace flopinj {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// --- The terminal --------------------------------------------------------------------------------

volatile std::sig_atomic_t signalled = 0;
void note_signal(int signal) { signalled = signal; }

// Takes the terminal: a screen of its own and, where standard input is the terminal too, keys one
// by one. Gives it back as it was, also before a signal ends or stops the program.
class Terminal {
 public:
  Terminal() : keys_(isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before_) == 0) {
    struct sigaction action {};
    action.sa_handler = note_signal;  // no SA_RESTART: poll() ends
    for (const int signal : kSignals) sigaction(signal, &action, nullptr);
    take();
  }
  ~Terminal() { give_back(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool keys() const { return keys_; }
  // The next key, an arrow as the letter at its end, or nothing when the time is over.
  std::optional<char> key(double seconds) {
    pollfd input{keys_ ? STDIN_FILENO : -1, POLLIN, 0};
    const int ready = poll(&input, 1, static_cast<int>(seconds * 1000));
    obey_signal();
    std::array<char, 16> bytes;
    const ssize_t size = ready > 0 ? read(STDIN_FILENO, bytes.data(), bytes.size()) : 0;
    if (ready > 0 && size <= 0) keys_ = false;  // the terminal has gone
    return size > 0 ? std::optional(bytes[static_cast<size_t>(size) - 1]) : std::nullopt;
  }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

  void take() {
    std::cout << "\033[?1049h\033[?25l" << std::flush;
    if (!keys_) return;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  void give_back() {
    std::cout << "\033[?25h\033[?1049l" << std::flush;
    if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  void obey_signal() {
    const int signal = signalled;
    signalled = 0;
    if (signal == 0 || signal == SIGWINCH) return;
    give_back();
    if (signal != SIGTSTP) std::signal(signal, SIG_DFL);
    raise(signal == SIGTSTP ? SIGSTOP : signal);
    take();  // of a program that was stopped
  }

  termios before_{};
  bool keys_;
};

winsize size_of_terminal() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size : winsize{};
}

// --- The screen ----------------------------------------------------------------------------------

// Orders of kernels, as flopreduce --sort takes them.
constexpr std::array kOrders = {"time", "flop", "launches", "each", "name"};

struct View {
  pid_t pid;
  size_t order = 0, first_line = 0;
  bool all = false, paused = false;
};

std::vector<std::string> form_of(const View& view) {
  std::vector<std::string> form = {"--color", "always", "--sort", kOrders[view.order]};
  if (view.all) form.emplace_back("--all");
  return form;
}

std::string text_of(const LiveReport& live, pid_t pid) {
  return status_text(pid, live.status) + "\n" +
         (live.text.empty() ? live.why_none + "\n" : live.text);
}

// As many lines as the terminal has, the last one for the keys.
void draw(const std::string& text, View& view, bool keys) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  const size_t rows = std::max<size_t>(size_of_terminal().ws_row, 2), shown = rows - 1;
  view.first_line = std::min(view.first_line, lines.size() - std::min(lines.size(), shown));
  std::string screen = "\033[H";
  for (size_t i = view.first_line; i < lines.size() && i < view.first_line + shown; ++i)
    screen += lines[i] + "\033[K\n";
  screen += "\033[J";
  if (keys)
    screen += "\033[" + std::to_string(rows) + ";1H" + (view.paused ? "PAUSED  " : "") +
              "q quit  p " + (view.paused ? "go on" : "pause") +
              "  s sort: " + kOrders[view.order] + "  a " +
              (view.all ? "first screen" : "all sections") + "  n next process  j k lines";
  std::cout << screen << std::flush;
}

// The recorded process after this one, itself where there is no other.
pid_t next_process(pid_t pid) {
  const std::vector<pid_t> found = listening_processes();
  const auto at = std::ranges::find(found, pid);
  return at != found.end() && at + 1 != found.end() ? at[1] : found.empty() ? pid : found.front();
}

enum class After { kRedraw, kReadAgain, kQuit };

After obey(char key, View& view) {
  const size_t page = std::max<size_t>(size_of_terminal().ws_row, 4) - 2;
  const auto up = [&](size_t by) { view.first_line -= std::min(view.first_line, by); };
  switch (key) {
    case 'q':
      return After::kQuit;
    case 'p':
    case ' ':
      view.paused = !view.paused;
      return view.paused ? After::kRedraw : After::kReadAgain;
    case 's':
      view.order = (view.order + 1) % kOrders.size();
      return After::kReadAgain;
    case 'a':
      view.all = !view.all;
      return After::kReadAgain;
    case 'n':
      view = {.pid = next_process(view.pid), .order = view.order, .all = view.all};
      return After::kReadAgain;
    case 'j':
    case 'B':  // arrow down: ESC [ B
      ++view.first_line;
      return After::kRedraw;
    case 'k':
    case 'A':
      up(1);
      return After::kRedraw;
    case 'f':
      view.first_line += page;
      return After::kRedraw;
    case 'b':
      up(page);
      return After::kRedraw;
    default:
      return After::kRedraw;
  }
}

// What is shown next, on the screen also why a process cannot be asked now: the next one may be.
// Empty where the process has ended.
std::string read_again(const View& view, const std::string& before, bool screen) {
  try {
    return text_of(live_report(view.pid, screen ? form_of(view) : std::vector<std::string>{}),
                   view.pid);
  } catch (const std::exception& e) {
    const bool runs = process_runs(view.pid);
    if (before.empty() || (runs && !screen)) throw;
    return runs ? std::string(e.what()) + "\n" : "";
  }
}

// Reading a long trace again and again must not take a core.
Clock::time_point next_look(Clock::time_point began, double every_s) {
  constexpr double kMostShare = 0.2;
  const Seconds work = Clock::now() - began;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::max(Seconds(every_s) - work, work / kMostShare));
}

// Until the user ends it, or the process ends: false.
bool show_on_screen(View& view, double every_s) {
  Terminal terminal;
  std::string text;
  for (;;) {
    const auto began = Clock::now();
    setenv("COLUMNS", std::to_string(size_of_terminal().ws_col).c_str(), 1);
    text = read_again(view, text, true);
    if (text.empty()) return false;
    const auto due = next_look(began, every_s);
    for (After after = After::kRedraw; after != After::kReadAgain;) {
      draw(text, view, terminal.keys());
      constexpr double kPausedS = 3'600;
      const double left = std::max(Seconds(due - Clock::now()).count(), 0.0);
      if (const auto key = terminal.key(view.paused ? kPausedS : left))
        after = obey(*key, view);
      else if (!view.paused && Clock::now() >= due)
        after = After::kReadAgain;
      if (after == After::kQuit) return true;
    }
  }
}

// Until the process ends.
void print_again_and_again(const View& view, double every_s) {
  std::string text;
  for (;;) {
    const auto began = Clock::now();
    text = read_again(view, text, false);
    if (text.empty()) return;
    std::cout << text << std::flush;
    std::this_thread::sleep_until(next_look(began, every_s));
  }
}

}  // namespace

int top(const Options& options) {
  const pid_t pid = chosen(options);
  if (options.json) {
    const LiveReport live = live_report(pid, {"--format", "json"});
    Json both{{"status", live.status}, {"report", nullptr}};
    if (!live.text.empty()) both["report"] = Json::parse(live.text);
    std::cout << json_line(both) << std::flush;
    return kExitOk;
  }
  View view{.pid = pid};
  if (options.once) {
    std::cout << read_again(view, {}, false) << std::flush;
    return kExitOk;
  }
  if (isatty(STDOUT_FILENO) != 1)
    print_again_and_again(view, options.every_s);
  else if (show_on_screen(view, options.every_s))
    return kExitOk;
  std::cout << process_name(view.pid) << " has ended\n" << std::flush;
  return kExitOk;
}

}  // namespace flopinj
