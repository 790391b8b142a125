#include "parent.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

#include "process.h"

namespace flopinj {
namespace {

constexpr std::array kSignalsHandedOn = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM};
// A terminal sends these to the program, too.
constexpr std::array kFromTerminal = {SIGINT, SIGQUIT};

std::atomic<pid_t> g_program{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

void hand_on(int signal) {
  const int before = errno;
  if (const pid_t program = g_program; program > 0) ::kill(program, signal);
  errno = before;
}

}  // namespace

pid_t start_program(const std::function<int()>& become_program) {
  struct sigaction handler {};
  handler.sa_handler = hand_on;
  handler.sa_flags = SA_RESTART;
  sigset_t all, before;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);  // none is lost between here and the program's start
  const pid_t program = ::fork();
  if (program == 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::_exit(become_program());
  }
  g_program = program;
  for (const int signal : kSignalsHandedOn) ::sigaction(signal, &handler, nullptr);
  handler.sa_handler = SIG_IGN;
  for (const int signal : kFromTerminal) ::sigaction(signal, &handler, nullptr);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return program;
}

int wait_and_listen(pid_t program, RunSocket& socket, RunRecord& record) {
  const auto program_fd = static_cast<int>(::syscall(SYS_pidfd_open, program, 0));
  socket.receive_to_the_end(program, program_fd, record);
  if (program_fd >= 0) ::close(program_fd);
  const int status = wait_for(program);
  g_program = 0;
  socket.receive(record);  // of threads that went on without the first one
  return status;
}

int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  const rlimit no_core{0, 0};  // the program's own is enough
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  return 128 + signal;
}

}  // namespace flopinj
