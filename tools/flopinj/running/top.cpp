#include "running/top.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "exit_codes.h"
#include "running/attach.h"
#include "running/live_report.h"

namespace flopinj {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

bool alive(pid_t pid) {
  try {
    find_target(pid);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

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

void write_whole(const std::string& file, const std::string& text) {
  const std::string beside = file + "." + std::to_string(getpid());
  std::ofstream out(beside);
  out << text;
  out.close();
  if (!out || std::rename(beside.c_str(), file.c_str()) != 0) {
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
  constexpr int kPatienceMs = 1'000;
  char request[4'096];
  pollfd polled{connection, POLLIN, 0};
  if (poll(&polled, 1, kPatienceMs) == 1 && recv(connection, request, sizeof request, 0) > 0) {
    const std::string answer =
        "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " +
        std::to_string(text.size()) + "\r\n\r\n" + text;
    [[maybe_unused]] const ssize_t sent =
        send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
  }
  close(connection);
}

}  // namespace

int top(const TopOptions& options, const InstallTree& tree) {
  if (options.json) {
    const LiveReport live = live_report(options.pid, tree, {"--format", "json"});
    nlohmann::json both{{"status", status_json(live.status)}, {"report", nullptr}};
    if (!live.text.empty()) both["report"] = nlohmann::json::parse(live.text);
    std::cout << both << "\n" << std::flush;
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
      if (alive(options.pid)) throw;
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
  const int listening = options.port != 0 ? listening_on(options.port) : -1;
  std::string newest;
  auto due = Clock::now();
  while (std::ranges::any_of(options.processes, alive)) {
    const auto began = Clock::now();
    if (began >= due) {
      newest = text();
      if (!options.file.empty()) write_whole(options.file, newest);
      due = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(options.every_s));
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - Clock::now());
    pollfd polled{listening, POLLIN, 0};
    constexpr int64_t kLookEveryMs = 1'000;
    if (poll(&polled, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, kLookEveryMs))) != 1)
      continue;
    if (const int connection = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC); connection >= 0)
      answer_http(connection, newest);
  }
  if (!options.file.empty()) unlink(options.file.c_str());  // or its last values would stay
  if (listening >= 0) close(listening);
  return kExitOk;
}

}  // namespace flopinj
