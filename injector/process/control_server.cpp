#include <collector/identity/start_thread.h>
#include <collector/trace/sink/descriptor.h>
#include <fcntl.h>
#include <injector/process/control_server.h>
#include <injector/process/helper_threads.h>
#include <injector/process/log.h>
#include <injector/process/process.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
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

// Never destroyed: its thread runs until the process ends.
struct Server {
  ControlDuties duties;
  Descriptor socket;
};
std::atomic<Server*> g_server{nullptr};

bool wait_for(int fd, short events, uint64_t until_ns) {
  pollfd polled{fd, events, 0};
  const uint64_t now = monotonic_ns();
  return now < until_ns && poll(&polled, 1, static_cast<int>((until_ns - now) / kNsPerMs) + 1) == 1;
}

bool same_user(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

// Up to the empty line, or nothing where the client is too slow or says too much.
std::string read_request(int connection) {
  const uint64_t until = monotonic_ns() + kPatienceMs * kNsPerMs;
  std::string request;
  char bytes[4'096];
  while (!request.ends_with("\n\n") && wait_for(connection, POLLIN, until)) {
    const ssize_t count = recv(connection, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count <= 0 || request.size() + static_cast<size_t>(count) > kMostRequestBytes) return {};
    request.append(bytes, static_cast<size_t>(count));
  }
  return request.ends_with("\n\n") ? request : std::string();
}

void send_all(int connection, std::string_view text) {
  const uint64_t until = monotonic_ns() + kPatienceMs * kNsPerMs;
  while (!text.empty() && wait_for(connection, POLLOUT, until)) {
    const ssize_t count = send(connection, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

void serve(const Server& server, int connection) {
  const Descriptor owned(connection);
  // Read in any case: a connection that is closed with something unread loses the answer.
  const std::string request = read_request(owned.get());
  if (request.empty()) return;
  send_all(owned.get(), same_user(owned.get()) ? server.duties.answer(request)
                                               : "error it belongs to another user\n");
}

int milliseconds_to_wait(const ControlDuties& duties) {
  const uint64_t due = duties.next_due_ns(), now = monotonic_ns();
  if (due == 0) return kLookEveryMs;
  if (due <= now) return 0;
  return static_cast<int>(std::min<uint64_t>((due - now) / kNsPerMs + 1, kLookEveryMs));
}

// A program that closes all descriptors may have one of its own by our number.
bool ours(const Descriptor& socket) { return socket.names() == Descriptor::Names::kOurs; }

void run(Server& server) noexcept {
  count_helper_thread("flopinj-control");
  while (!only_helpers_left()) {
    try {
      const int fd = ours(server.socket) ? server.socket.get() : -1;  // poll() passes over -1
      pollfd polled{fd, POLLIN, 0};
      const bool asked = poll(&polled, 1, milliseconds_to_wait(server.duties)) == 1;
      server.duties.do_due(monotonic_ns());
      if (!asked || !ours(server.socket)) continue;
      const int connection = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection >= 0) serve(server, connection);
    } catch (const std::exception&) {  // memory: the client gets no answer
    }
  }
  helper_thread_ended();
}

void listen_for(Server& server) {
  struct stat pid_namespace {};
  stat("/proc/self/ns/pid", &pid_namespace);
  sockaddr_un address;
  const socklen_t size = abstract_address(
      control_name(pid_namespace.st_ino, static_cast<uint32_t>(getpid())), address);
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  server.socket.reset(made);
  if (made < 0 || bind(server.socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(server.socket.get(), 8) != 0) {
    log::info({"no control socket (", errno_text(errno), "): flopinj attach, detach and status do ",
               "not reach this process"});
    server.socket.reset(-1);
  }
}

}  // namespace

bool serve_control(const ControlDuties& duties) noexcept {
  if (g_server.load() != nullptr) return true;
  try {
    auto server = std::make_unique<Server>();
    server->duties = duties;
    if (duties.listens) listen_for(*server);
    pthread_t thread{};
    if (!start_thread(thread, [raw = server.get()] { run(*raw); })) return false;
    pthread_detach(thread);
    g_server = server.release();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void forget_control_after_fork() noexcept {
  if (Server* const server = g_server.exchange(nullptr); server != nullptr) server->socket.close();
}

}  // namespace flopinj
