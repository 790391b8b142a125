#include <collector/base/start_thread.h>
#include <collector/trace/sink/descriptor.h>
#include <fcntl.h>
#include <injector/process/control_server.h>
#include <injector/process/helper_threads.h>
#include <injector/process/log.h>
#include <injector/process/process.h>
#include <injector/process/process_state.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "abstract_socket.h"
#include "control_address.h"

namespace flopinj {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr int kLookEveryMs = 1'000;
constexpr int kPatienceMs = 1'000;  // with a client
// Every user of the machine can connect, and each connection takes a descriptor of the program's.
constexpr size_t kMostConnections = 8;
constexpr int kMostWaiting = 64;  // for one of these: in the kernel
constexpr int kPauseMs = 10;      // so that a flood of connections takes no core

// The first line of a request is the secret. Until it has come, nothing more is read.
using Secret = std::array<char, ControlMark::kSecretDigits + 1>;

}  // namespace

// Never destroyed: its thread runs until the process ends.
struct ControlServer {
  struct Connection {
    Descriptor fd;  // -1: none
    uid_t user = 0;
    uint64_t until_ns = 0;
    Secret first_line{};
    size_t first_line_size = 0;
    std::string request;  // what is behind the first line

    bool proven() const { return first_line_size == first_line.size(); }
  };

  ControlDuties duties;
  Descriptor socket, mark;
  Secret secret{};
  std::array<Connection, kMostConnections> connections;
};

namespace {

using Connection = ControlServer::Connection;

// A program that closes all descriptors may have one of its own by our number.
bool ours(const Descriptor& fd) { return fd.names() == Descriptor::Names::kOurs; }

// In a time that does not depend on where they differ.
bool same(const Secret& a, const Secret& b) {
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

// An answer is short: it fits into the socket's buffer, or the client is not waited for.
void answer(Connection& connection, std::string_view text) {
  if (ours(connection.fd))
    send(connection.fd.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  connection.fd.close();
}

// Takes what has come. False: the connection is to be ended, or has been.
bool receive(const ControlServer& server, Connection& from) {
  std::array<char, 4'096> bytes;
  for (;;) {
    if (!ours(from.fd)) return false;
    const bool proven = from.proven();
    char* const to = proven ? bytes.data() : from.first_line.data() + from.first_line_size;
    const size_t room = proven ? bytes.size() : from.first_line.size() - from.first_line_size;
    const ssize_t count = recv(from.fd.get(), to, room, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (count <= 0) return false;
    const auto size = static_cast<size_t>(count);
    if (proven) {
      if (from.request.size() + size > kMostRequestBytes) return false;
      from.request.append(bytes.data(), size);
      if (!from.request.ends_with("\n\n")) continue;
      answer(from, server.duties.answer(from.request));
      return false;
    }
    from.first_line_size += size;
    if (from.proven() && !same(from.first_line, server.secret)) {
      answer(from, "error the request does not begin with the secret of this process\n");
      return false;
    }
  }
}

void serve(ControlServer& server, Connection& connection) {
  bool going_on = false;
  try {
    going_on = receive(server, connection);
  } catch (const std::exception&) {  // memory: the client gets no answer
  }
  if (going_on && monotonic_ns() < connection.until_ns) return;
  connection.fd.close();
  connection.request = {};
}

// A free place, or else the place of the oldest connection of the user that has most: no user keeps
// others out. One that has shown the secret goes last.
Connection& place_for(std::array<Connection, kMostConnections>& all) {
  const auto weight = [&](const Connection& c) {
    if (c.fd.get() < 0) return 2 * kMostConnections;
    if (c.proven()) return size_t{0};
    return static_cast<size_t>(std::ranges::count_if(
        all, [&](const Connection& d) { return d.fd.get() >= 0 && d.user == c.user; }));
  };
  return *std::ranges::max_element(all, [&](const Connection& a, const Connection& b) {
    return std::pair(weight(a), b.until_ns) < std::pair(weight(b), a.until_ns);
  });
}

void accept_into(Connection& place, int fd) {
  place.fd.reset(fd);
  ucred peer{};
  socklen_t size = sizeof peer;
  getsockopt(place.fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  place.user = peer.uid;
  place.until_ns = monotonic_ns() + kPatienceMs * kNsPerMs;
  place.first_line_size = 0;
  place.request.clear();
}

// False where there was more to take than is taken at a time, or one could not be taken.
bool accept_all(ControlServer& server) {
  for (size_t taken = 0; taken < kMostConnections; ++taken) {
    if (!ours(server.socket)) return true;
    const int fd = accept4(server.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return errno == EAGAIN;
    Connection& place = place_for(server.connections);
    accept_into(place, fd);
    serve(server, place);
  }
  return false;
}

int milliseconds_to_wait(const ControlServer& server) {
  uint64_t due = server.duties.next_due_ns();
  for (const Connection& connection : server.connections)
    if (connection.fd.get() >= 0)
      due = due == 0 ? connection.until_ns : std::min(due, connection.until_ns);
  const uint64_t now = monotonic_ns();
  if (due == 0) return kLookEveryMs;
  if (due <= now) return 0;
  return static_cast<int>(std::min<uint64_t>((due - now) / kNsPerMs + 1, kLookEveryMs));
}

void wait_and_serve(ControlServer& server) {
  std::array<pollfd, 1 + kMostConnections> polled{};
  const auto watched = [](const Descriptor& fd) {  // poll() passes over -1
    return pollfd{ours(fd) ? fd.get() : -1, POLLIN, 0};
  };
  polled[0] = watched(server.socket);
  for (size_t i = 0; i < kMostConnections; ++i) polled[i + 1] = watched(server.connections[i].fd);
  const int ready = poll(polled.data(), polled.size(), milliseconds_to_wait(server));
  server.duties.do_due(monotonic_ns());
  for (Connection& connection : server.connections)
    if (connection.fd.get() >= 0) serve(server, connection);
  if (ready > 0 && polled[0].revents != 0 && !accept_all(server)) poll(nullptr, 0, kPauseMs);
}

void run(ControlServer& server) noexcept {
  count_helper_thread("flopinj-control");
  while (!only_helpers_left()) {
    try {
      wait_and_serve(server);
    } catch (const std::exception&) {  // memory: what is due is done the next time
    }
  }
  helper_thread_ended();
}

std::string random_digits(size_t count) {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  std::string digits;
  for (size_t i = 0; i < count; ++i)
    digits += "0123456789abcdef"[i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15];
  return digits;
}

// Where the system lets no memfd be executed, it wants to hear that ours is not meant to be.
int empty_memfd(const std::string& name) {
  constexpr unsigned kNoExecute = 8;  // MFD_NOEXEC_SEAL, since Linux 6.3
  const int fd = memfd_create(name.c_str(), MFD_CLOEXEC | kNoExecute);
  return fd < 0 && errno == EINVAL ? memfd_create(name.c_str(), MFD_CLOEXEC) : fd;
}

// False and errno. The mark comes last: where it is found, the socket listens.
bool listen_at(ControlServer& server, const ControlMark& mark) {
  if (mark.address.empty() || mark.secret.empty()) return false;
  sockaddr_un address;
  const socklen_t size = abstract_address(mark.socket(), address);
  server.socket.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (bind(server.socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(server.socket.get(), kMostWaiting) != 0)
    return false;
  std::ranges::copy(mark.secret, server.secret.begin());
  server.secret.back() = '\n';
  server.mark.reset(empty_memfd(mark.text()));
  return server.mark.get() >= 0;
}

void listen_for(ControlServer& server) {
  ControlMark mark;
  mark.address = random_digits(ControlMark::kAddressDigits);
  mark.secret = random_digits(ControlMark::kSecretDigits);
  if (listen_at(server, mark)) return;
  log::info({"no control socket (", errno_text(errno), "): flopinj attach, detach and status do ",
             "not reach this process"});
  server.socket.reset(-1);
}

}  // namespace

bool serve_control(const ControlDuties& duties) noexcept {
  auto& current = process_state().control;
  if (current.load() != nullptr) return true;
  try {
    auto server = std::make_unique<ControlServer>();
    server->duties = duties;
    if (duties.listens) listen_for(*server);
    pthread_t thread{};
    current = server.get();  // from here on a forked child closes what it has open
    if (!start_thread(thread, [raw = server.get()] { run(*raw); })) {
      current = nullptr;
      return false;
    }
    pthread_detach(thread);
    static_cast<void>(server.release());
    return true;
  } catch (const std::exception&) {
    current = nullptr;
    return false;
  }
}

void close_inherited(ControlServer* server) noexcept {
  if (server == nullptr) return;
  server->socket.close();
  server->mark.close();
  for (Connection& connection : server->connections) connection.fd.close();
  explicit_bzero(server->secret.data(), server->secret.size());
}

}  // namespace flopinj
