#include "watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <random>

#include "abstract_socket.h"
#include "open_trace_words.h"
#include "process.h"
#include "shell_word.h"

namespace flopinj {
namespace {

// Launchers that take variables along, to other machines too.
constexpr std::string_view kStartsElsewhere[] = {"srun", "mpirun", "mpiexec", "orterun",
                                                 "prun", "aprun",  "jsrun"};

// `place`: "SOCKET:SECRET".
int open_socket(std::string& place) {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  std::random_device random;
  const std::string name =
      "flopinj-run-" + std::to_string(getpid()) + "-" + std::to_string(random());
  place = name + ":";
  for (int i = 0; i < 4; ++i) place += std::to_string(random()) + ".";
  sockaddr_un address;
  const socklen_t size = abstract_address(name, address);
  const int on = 1;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
      ::setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0)
    return fd;
  ::close(fd);
  return -1;
}

// Of what the launcher had open only stderr stays, and a reader of that waits for the program's
// end, as it would have.
void let_go_of_everything(std::array<int, 2> keep) {
  ::setsid();
  [[maybe_unused]] const int moved = ::chdir("/");
  for (const int signal : {SIGHUP, SIGPIPE, SIGTTOU, SIGINT, SIGQUIT}) std::signal(signal, SIG_IGN);
  const int most = static_cast<int>(std::min<long>(::sysconf(_SC_OPEN_MAX), 65'536));
  for (int fd = 0; fd < most; ++fd)
    if (fd != STDERR_FILENO && fd != keep[0] && fd != keep[1]) ::close(fd);
}

}  // namespace

std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i) text += " " + shell_quoted(names[i]);
  return names.size() > kMost ? text + " ..." : text;
}

RunSocket::RunSocket() : fd_(open_socket(name_)) {
  if (fd_ < 0) name_.clear();
}

RunSocket::~RunSocket() {
  if (fd_ >= 0) ::close(fd_);
}

void RunSocket::receive_to_the_end(pid_t program, int program_fd, RunRecord& record) {
  constexpr int kPollMs = 250;  // where the kernel has no pidfd (before Linux 5.3)
  constexpr int kSettleMs = 100;
  for (bool ended = false; !ended;) {
    std::array<pollfd, 2> ready{{{fd_, POLLIN, 0}, {program_fd, POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), program_fd < 0 ? kPollMs : -1);
    ended = ready[1].revents != 0 || (program_fd < 0 && !process_runs(program));
    receive(record);
  }
  // The line that nothing was recorded comes at once, before whoever reads has turned away.
  if (record.any() && !record.last_words(process_runs).empty()) ::poll(nullptr, 0, kSettleMs);
  receive(record);
}

// Everything that has come. Every user of the machine can write to the socket: a datagram
// without the secret is passed over.
void RunSocket::receive(RunRecord& record) {
  constexpr int kMostAtOnce = 1'000;  // more than the kernel keeps
  const std::string secret = name_.substr(std::min(name_.size(), name_.find(':') + 1));
  std::array<char, 128 + PATH_MAX> text;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
  for (int i = 0; i < kMostAtOnce; ++i) {
    iovec part{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = ::recvmsg(fd_, &message, 0);
    if (size < 0) return;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::copy_n(CMSG_DATA(header), sizeof sender, reinterpret_cast<unsigned char*>(&sender));
    std::string_view said(text.data(), static_cast<size_t>(size));
    if (!said.starts_with(secret)) continue;
    said.remove_prefix(secret.size());
    if (const auto notice = parse_run_notice(said)) record.take(sender.pid, *notice);
  }
}

void RunRecord::take(pid_t process, const RunNotice& notice) {
  constexpr size_t kMost = 10'000;
  if (notice.event == RunEvent::kRecording) {
    if (traces_.size() < kMost) traces_.push_back({process, notice.trace, false, false});
    return;
  }
  if (notice.event == RunEvent::kWaiting) {
    waited_ = true;
    return;
  }
  if (notice.event == RunEvent::kRefused) {
    refused_ = true;
    std::erase_if(traces_, [&](const Trace& t) { return t.process == process && !t.ended; });
    return;
  }
  for (Trace& trace : traces_)
    if (trace.process == process && trace.name == notice.trace) {
      trace.ended = true;
      trace.cut |= notice.event == RunEvent::kCut;
    }
}

std::string RunRecord::why_nothing() const {
  if (waited_)
    return "nothing was recorded: nobody asked for it, or the time or range that was to be "
           "recorded did not come";
  const std::string name = std::filesystem::path(program_).filename();
  if (std::ranges::count(kStartsElsewhere, name) > 0)
    return "nothing was recorded on this machine: " + name +
           " starts the processes of a job, which may be on others. What they record is where they "
           "run. Next: " +
           name + " flopinj run -- PROGRAM";
  if (simulated_)
    return "nothing was recorded: no process of this run started CUDA on the simulated GPU. It "
           "runs programs that give PTX to the driver (cuda-core, Numba, Taichi, tinygrad, "
           "Triton's kernels) and nvcc's, linked with -cudart shared; others of the CUDA runtime "
           "(PyTorch, JAX, CuPy) need a GPU";
  if (!driver_())
    return std::string(
               "no NVIDIA driver on this machine (libcuda.so.1 not found): nothing was "
               "recorded. ") +
           kNoDriverAdvice;
  return "nothing was recorded: no process of this run started CUDA where the profiler could see "
         "it. If the program uses a GPU, it may clear its environment (try --preload), or run it "
         "in "
         "a container or on another machine; flopinj doctor checks this one";
}

std::vector<std::string> RunRecord::last_words(bool (*runs)(pid_t), bool cut_too) const {
  if (traces_.empty() && !refused_) return {why_nothing()};
  std::vector<std::string> open, cut, going_on, lines;
  for (const Trace& trace : traces_)
    if (trace.cut)
      cut.push_back(trace.name);
    else if (!trace.ended)
      (runs(trace.process) ? going_on : open).push_back(trace.name);
  const auto name = [&](const std::vector<std::string>& names, const char* what) {
    if (names.empty() || !cut_too) return;
    lines.push_back(
        (names.size() == 1 ? "a process" : std::to_string(names.size()) + " processes") + what +
        kLaterIsMissing + ". Next: flopinj report" + names_text(names));
  };
  name(open, " ended without closing the trace (by a signal, say): ");
  name(cut, " could not write the trace to the end, as said before: ");
  if (!going_on.empty())
    lines.push_back((going_on.size() == 1 ? "a process of this run goes on, and records to"
                                          : std::to_string(going_on.size()) +
                                                " processes of this run go on, and record to") +
                    names_text(going_on));
  return lines;
}

std::vector<std::string> RunRecord::traces(bool (*runs)(pid_t)) const {
  std::vector<std::string> names;
  for (const Trace& trace : traces_)
    if (trace.ended || !runs(trace.process)) names.push_back(trace.name);
  return names;
}

std::string start_watcher(const std::string& name, bool simulated) {
  // Orphans are given to this process: the watcher would be the program's child, which waits for
  // the program's end where the program may wait for the end of all children.
  int adopts = 0;
  if (getpid() == 1 || (::prctl(PR_GET_CHILD_SUBREAPER, &adopts) == 0 && adopts != 0)) return {};
  RunSocket socket;
  if (socket.descriptor() < 0) return {};
  const pid_t program = getpid();
  const pid_t between = ::fork();
  if (between == 0) {  // ends at once, so that the watcher is no child of the program's
    if (::fork() != 0) ::_exit(0);
    const auto program_fd = static_cast<int>(::syscall(SYS_pidfd_open, program, 0));
    let_go_of_everything({socket.descriptor(), program_fd});
    RunRecord record(name, simulated);
    socket.receive_to_the_end(program, program_fd, record);
    for (const std::string& line : record.last_words(process_runs)) say(line);
    ::_exit(0);
  }
  if (between < 0) return {};
  wait_for(between);
  return socket.name();
}

}  // namespace flopinj
