#include "running/control_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>

#include "abstract_socket.h"
#include "control_address.h"
#include "printable_text.h"
#include "process.h"

namespace flopinj {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAnswerTime(30);

struct Socket {
  int fd = -1;
  Socket() = default;
  ~Socket() { reset(-1); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  void reset(int to) {
    if (fd >= 0) close(fd);
    fd = to;
  }
};

ino_t inode_of(const fs::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

[[noreturn]] void refuse_reading(pid_t pid) {
  refuse(pid,
         "may not be asked by this user: be the user who started it, or root; in a container "
         "root needs docker run --cap-add SYS_PTRACE");
}

[[noreturn]] void refuse_waiting(pid_t pid) {
  refuse(pid, "does not answer: it may be stopped, or busy with an earlier request; try again");
}

// The process's marks among its open files. Links to a file's name are longer than a mark.
std::vector<ControlMark> marks_of(pid_t pid, Clock::time_point give_up) {
  constexpr size_t kMostMarks = 64;  // of a process there is one, and of its children's files more
  std::vector<ControlMark> marks;
  std::error_code error;
  fs::directory_iterator file(proc_path(pid, "fd"), error);
  for (; !error && file != fs::directory_iterator(); file.increment(error)) {
    char text[256];
    const ssize_t size = readlink(file->path().c_str(), text, sizeof text);
    if (size < 0 && (errno == EACCES || errno == EPERM)) refuse_reading(pid);
    if (size <= 0) continue;  // closed by now
    if (auto mark = ControlMark::parse({text, static_cast<size_t>(size)}); mark)
      marks.push_back(*std::move(mark));
    if (marks.size() == kMostMarks) break;
    if (Clock::now() > give_up) refuse_waiting(pid);
  }
  if (error == std::errc::permission_denied || error == std::errc::operation_not_permitted)
    refuse_reading(pid);
  return marks;
}

// False: no process listens there, or another one.
bool connect_to(Socket& connection, const ControlMark& mark, pid_t pid) {
  sockaddr_un address;
  const socklen_t size = abstract_address(mark.socket(), address);
  connection.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{kAnswerTime.count(), 0};  // for connect(), too
  setsockopt(connection.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(connection.fd, reinterpret_cast<sockaddr*>(&address), size) != 0) {
    if (errno == EAGAIN) refuse_waiting(pid);
    return false;
  }
  ucred peer{};
  socklen_t peer_size = sizeof peer;
  return getsockopt(connection.fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) == 0 &&
         peer.pid == pid;
}

// The secret of the process that is connected to.
std::string connect_to(Socket& connection, pid_t pid, Clock::time_point give_up) {
  if (!fs::exists(proc_path(pid, "")))
    throw std::runtime_error("there is no " + process_name(pid) +
                             ": has it ended? flopinj status lists the recorded ones");
  if (!process_runs(pid)) refuse(pid, "has ended");
  const std::vector<ControlMark> marks = marks_of(pid, give_up);
  for (const ControlMark& mark : marks)
    if (mark.version == kControlVersion && connect_to(connection, mark, pid)) return mark.secret;
  for (const ControlMark& mark : marks)
    if (mark.version != kControlVersion)
      refuse(pid,
             std::string("has a libflopinj.so of ") +
                 (mark.version > kControlVersion ? "a newer" : "an older") +
                 " flopinj than this one: ask it with the flopinj that belongs to that library");
  if (!marks.empty()) refuse_other_network(pid);
  throw NotListening(
      process_name(pid) +
      " does not listen: it was not started with flopinj (flopinj run, or flopinj run --dormant), "
      "has not started CUDA yet, or was told not to (--no-control); flopinj status lists programs "
      "that listen");
}

bool listens(pid_t pid) {
  try {
    Socket connection;
    connect_to(connection, pid, Clock::now() + kAnswerTime);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

std::string received(int fd, pid_t pid, Clock::time_point give_up) {
  std::string text;
  char bytes[4'096];
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(give_up - Clock::now()).count();
    pollfd polled{fd, POLLIN, 0};
    if (left <= 0 || poll(&polled, 1, static_cast<int>(left)) != 1) refuse_waiting(pid);
    const ssize_t count = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count == 0) return text;
    if (count < 0) refuse(pid, "has ended the connection");
    text.append(bytes, static_cast<size_t>(count));
    if (text.size() > kMostAnswerBytes) refuse(pid, "answers without end: nothing of it is used");
  }
}

[[noreturn]] void not_understood(pid_t pid, const std::string& what) {
  constexpr size_t kMost = 80;
  refuse(pid, "answers what this flopinj does not understand: " + printable(what.substr(0, kMost)));
}

template <class Number>
Number number_in(pid_t pid, const std::string& key, const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !std::isfinite(static_cast<double>(number)))
    not_understood(pid, key + " " + text);
  return number;
}

// Throws std::runtime_error where it is an error, or no answer.
Json parse_answer(pid_t pid, const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line)) refuse(pid, "ended while it was asked");
  if (line.starts_with("error "))
    throw std::runtime_error(process_name(pid) + ": " + printable(line.substr(6)));
  if (line != "ok") not_understood(pid, line);
  Json answer = Json::object();
  while (std::getline(lines, line)) {
    const size_t space = line.find(' ');
    if (space == line.npos) not_understood(pid, line);
    const std::string key = line.substr(0, space), value = line.substr(space + 1);
    if (key == "state" || key == "output" || key == "mode")
      answer[key] = value;
    else if (key == "seconds" || key == "covered")
      answer[key] = number_in<double>(pid, key, value);
    else
      answer[key] = number_in<uint64_t>(pid, key, value);
  }
  return answer;
}

}  // namespace

std::vector<pid_t> all_processes() {
  std::vector<pid_t> found;
  std::error_code error;
  fs::directory_iterator process("/proc", error);
  for (; !error && process != fs::directory_iterator(); process.increment(error)) {
    const std::string name = process->path().filename();
    pid_t pid = 0;
    const auto end = std::from_chars(name.data(), name.data() + name.size(), pid).ptr;
    if (end == name.data() + name.size() && pid > 0) found.push_back(pid);
  }
  std::ranges::sort(found, std::greater<>());
  return found;
}

std::vector<pid_t> listening_processes() {
  std::vector<pid_t> found = all_processes();
  std::erase_if(found, [](pid_t pid) { return !listens(pid); });
  return found;
}

void refuse_other_network(pid_t pid) {
  if (inode_of(proc_path(pid, "ns/net")) == inode_of("/proc/self/ns/net")) return;
  refuse(pid,
         "is in a network namespace of its own (a container): run flopinj inside of it, or as "
         "root: nsenter -t " +
             std::to_string(pid) + " -n flopinj ...");
}

std::string shown(const Json& answer, const char* key) {
  return printable(answer.value(key, std::string()));
}

Json ask(pid_t pid, const std::vector<std::string>& request) {
  const auto give_up = Clock::now() + kAnswerTime;
  std::string text;
  for (const std::string& line : request) text += line + "\n";
  text += "\n";
  if (text.size() > kMostRequestBytes) throw std::runtime_error("the settings are too long");
  Socket connection;
  text.insert(0, connect_to(connection, pid, give_up) + "\n");
  if (send(connection.fd, text.data(), text.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(text.size()))
    refuse(pid, std::string("does not take the request: ") + std::strerror(errno));
  return parse_answer(pid, received(connection.fd, pid, give_up));
}

}  // namespace flopinj
