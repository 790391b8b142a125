#include "running/top.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "exit_codes.h"
#include "running/attach.h"
#include "running/live_report.h"
#include "watch.h"

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

// In a folder that others write to, a file or link of theirs may have the name beside: it is not
// written to.
void write_whole(const std::string& file, const std::string& text) {
  const std::string beside = file + "." + std::to_string(getpid());
  unlink(beside.c_str());  // of an earlier process
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  const bool written =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if ((fd >= 0 && close(fd) != 0) || !written || std::rename(beside.c_str(), file.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    unlink(beside.c_str());
    throw std::runtime_error("cannot write " + file + ": " + why);
  }
}

int listening_on(unsigned port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 8) != 0)
    throw std::runtime_error("cannot listen on 127.0.0.1:" + std::to_string(port) + ": " +
                             std::strerror(errno));
  return fd;
}

// One answer to whatever is asked: there is one page.
void answer_http(int connection, const std::string& text) {
  const timeval patience{1, 0};
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  char request[4'096];
  if (recv(connection, request, sizeof request, MSG_DONTWAIT) > 0) {
    const std::string answer =
        "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " +
        std::to_string(text.size()) + "\r\n\r\n" + text;
    [[maybe_unused]] const ssize_t sent =
        send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
  }
  close(connection);
}

// A socket that listens, or -1, and the connections that have asked nothing yet, the oldest first:
// they keep no other waiting.
class Page {
 public:
  explicit Page(int listening) : polled_{{listening, POLLIN, 0}} {}
  ~Page() {
    for (const pollfd& one : polled_)
      if (one.fd >= 0) close(one.fd);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  void serve(const std::string& text, int at_most_ms) {
    constexpr size_t kMostConnections = 16;
    if (poll(polled_.data(), polled_.size(), at_most_ms) <= 0) return;
    const bool asked = polled_.front().revents != 0;
    for (size_t i = polled_.size(); i-- > 1;) {
      if (polled_[i].revents == 0) continue;
      answer_http(polled_[i].fd, text);
      polled_.erase(polled_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const int fd = asked ? accept4(polled_.front().fd, nullptr, nullptr, SOCK_CLOEXEC) : -1;
    if (fd < 0) return;
    if (polled_.size() > kMostConnections) {
      close(polled_[1].fd);
      polled_.erase(polled_.begin() + 1);
    }
    polled_.push_back({fd, POLLIN, 0});
  }

 private:
  std::vector<pollfd> polled_;
};

}  // namespace

int top(const TopOptions& options, const InstallTree& tree) {
  if (options.json) {
    const LiveReport live = live_report(options.pid, tree, {"--format", "json"});
    nlohmann::json both{{"status", status_json(live.status)}, {"report", nullptr}};
    if (!live.text.empty()) both["report"] = nlohmann::json::parse(live.text);
    std::cout << json_line(both) << std::flush;
    return kExitOk;
  }
  const bool screen = !options.once && isatty(1) == 1;
  if (screen) std::cout << "\033[2J";
  for (;;) {
    const auto began = Clock::now();
    try {
      draw(live_report(
               options.pid, tree,
               screen ? std::vector<std::string>{"--color", "always"} : std::vector<std::string>{}),
           options.pid, screen);
    } catch (const std::exception&) {
      if (process_runs(options.pid)) throw;
      std::cout << "process " << options.pid << " has ended\n" << std::flush;
      return kExitOk;
    }
    if (options.once) return kExitOk;
    pause_after(Seconds(Clock::now() - began).count(), options.every_s);
  }
}

int metrics(const MetricsOptions& options, const InstallTree& tree) {
  const auto text = [&] { return prometheus_text(options.processes, tree); };
  if (options.file.empty() && options.port == 0) {
    std::cout << text() << std::flush;
    return kExitOk;
  }
  Page page(options.port != 0 ? listening_on(options.port) : -1);
  std::string newest;
  auto due = Clock::now();
  while (std::ranges::any_of(options.processes, process_runs)) {
    const auto began = Clock::now();
    if (began >= due) {
      newest = text();
      if (!options.file.empty()) write_whole(options.file, newest);
      due = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(options.every_s));
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - Clock::now());
    constexpr int64_t kLookEveryMs = 1'000;
    page.serve(newest, static_cast<int>(std::clamp<int64_t>(left.count(), 0, kLookEveryMs)));
  }
  if (!options.file.empty()) unlink(options.file.c_str());  // or its last values would stay
  return kExitOk;
}

}  // namespace flopinj
