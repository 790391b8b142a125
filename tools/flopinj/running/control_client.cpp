#include "running/control_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "abstract_socket.h"
#include "control_address.h"

namespace flopinj {
namespace {

namespace fs = std::filesystem;

constexpr int kPatienceMs = 30'000;

struct Socket {
  int fd = -1;
  Socket() = default;
  ~Socket() {
    if (fd >= 0) close(fd);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
};

fs::path proc(pid_t pid) { return fs::path("/proc") / std::to_string(pid); }

std::string process_name(pid_t pid) { return "process " + std::to_string(pid); }

ino_t inode_of(const fs::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// The last number of a line such as "NSpid: 4711 12".
pid_t last_number(const std::string& line) {
  pid_t number = 0;
  const size_t space = line.find_last_of(" \t");
  if (space == line.npos) return 0;
  std::from_chars(line.data() + space + 1, line.data() + line.size(), number);
  return number;
}

std::string received(int fd, pid_t pid) {
  std::string text;
  char bytes[4'096];
  for (;;) {
    pollfd polled{fd, POLLIN, 0};
    if (poll(&polled, 1, kPatienceMs) != 1)
      throw std::runtime_error(process_name(pid) +
                               " does not answer: it may be stopped, or busy "
                               "with an earlier request; try again");
    const ssize_t count = recv(fd, bytes, sizeof bytes, 0);
    if (count == 0) return text;
    if (count < 0) throw std::runtime_error(process_name(pid) + " has ended the connection");
    text.append(bytes, static_cast<size_t>(count));
  }
}

// Root may ask anybody's process; nobody else listens to us.
void check_peer(int fd, const Target& target) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      (peer.uid != target.user && peer.uid != 0))
    throw std::runtime_error("another user's program listens in the place of " +
                             process_name(target.pid) + ": nothing was asked of it");
}

void connect_to(Socket& socket_, const Target& target) {
  sockaddr_un address;
  const socklen_t size = abstract_address(
      control_name(target.pid_namespace, static_cast<uint32_t>(target.own_pid)), address);
  socket_.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_.fd >= 0 && connect(socket_.fd, reinterpret_cast<sockaddr*>(&address), size) == 0)
    return check_peer(socket_.fd, target);
  if (!target.same_network)
    throw std::runtime_error(
        process_name(target.pid) +
        " is in a network namespace of its own (a container): run flopinj inside of it, or as "
        "root: nsenter -t " +
        std::to_string(target.pid) + " -n flopinj ...");
  throw NotListening(process_name(target.pid) +
                     " does not listen: it was not started with flopinj "
                     "(flopinj run, or flopinj run --dormant), has not started CUDA yet, or was "
                     "told not to listen (--no-control)");
}

}  // namespace

Target find_target(pid_t pid) {
  Target target;
  target.pid = target.own_pid = pid;
  std::ifstream status(proc(pid) / "status");
  if (!status) throw std::runtime_error("there is no " + process_name(pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("NSpid:")) target.own_pid = last_number(line);
    if (line.starts_with("Uid:")) std::istringstream(line.substr(4)) >> target.user;
    if (line.starts_with("State:") && line.find('Z') != line.npos)
      throw std::runtime_error(process_name(pid) + " has ended");
  }
  if (geteuid() != 0 && geteuid() != target.user)
    throw std::runtime_error(process_name(pid) +
                             " belongs to another user: only its user and root may ask it");
  target.pid_namespace = inode_of(proc(pid) / "ns/pid");
  target.same_network = inode_of(proc(pid) / "ns/net") == inode_of("/proc/self/ns/net");
  return target;
}

Answer ask(pid_t pid, const std::vector<std::string>& request) {
  const Target target = find_target(pid);
  std::string text;
  for (const std::string& line : request) {
    if (line.find('\n') != line.npos)
      throw std::runtime_error("a setting has a line break in it: " + line);
    text += line + "\n";
  }
  text += "\n";
  if (text.size() > kMostRequestBytes) throw std::runtime_error("the settings are too long");
  Socket connection;
  connect_to(connection, target);
  if (send(connection.fd, text.data(), text.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(text.size()))
    throw std::runtime_error(process_name(pid) +
                             " does not take the request: " + std::strerror(errno));
  std::istringstream lines(received(connection.fd, pid));
  std::string line;
  if (!std::getline(lines, line))
    throw std::runtime_error(process_name(pid) + " ended while it was asked");
  if (line.starts_with("error "))
    throw std::runtime_error(process_name(pid) + ": " + line.substr(6));
  Answer answer;
  while (std::getline(lines, line))
    if (const size_t space = line.find(' '); space != line.npos)
      answer[line.substr(0, space)] = line.substr(space + 1);
  return answer;
}

}  // namespace flopinj
