#include "condense.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <vector>

#include "shell_word.h"

namespace flopinj {
namespace {

namespace fs = std::filesystem;

constexpr std::array kHandedOn = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM};
// A terminal sends these to the program, too.
constexpr std::array kFromTerminal = {SIGINT, SIGQUIT};

std::atomic<pid_t> g_program{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

void hand_on(int signal) {
  const int before = errno;
  if (const pid_t program = g_program; program > 0) ::kill(program, signal);
  errno = before;
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The program is started with the signals as we were.
pid_t start(const std::function<int()>& become_program) {
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
  for (const int signal : kHandedOn) ::sigaction(signal, &handler, nullptr);
  handler.sa_handler = SIG_IGN;
  for (const int signal : kFromTerminal) ::sigaction(signal, &handler, nullptr);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return program;
}

int wait_and_listen(pid_t program, RunSocket& socket, RunRecord& record) {
  int status = 0;
  const auto program_fd = static_cast<int>(::syscall(SYS_pidfd_open, program, 0));
  for (;;) {
    const pid_t ended = ::waitpid(program, &status, WNOHANG);
    socket.receive(record);
    if (ended == program || (ended < 0 && errno != EINTR)) break;
    socket.wait(program_fd);
  }
  if (program_fd >= 0) ::close(program_fd);
  g_program = 0;
  socket.receive_last(record);
  return status;
}

// Whether flopreduce has written the summary. What is wrong it says itself.
bool merge(const Condensing& how, const std::string& trace, const std::string& summary) {
  std::vector<std::string> words = {how.reducer.string(), "merge", "-o", summary};
  if (how.force) words.emplace_back("--force");
  words.push_back(trace);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t reducer = ::fork();
  if (reducer < 0) return false;
  if (reducer == 0) {
    ::umask(077);  // a summary is its owner's, as a trace is
    ::execv(arguments[0], arguments.data());
    const std::string text =
        std::string("flopinj: cannot run ") + arguments[0] + ": " + std::strerror(errno) + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(127);
  }
  const int status = wait_for(reducer);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string names_text(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i) text += " " + shell_quoted(names[i]);
  return names.size() > kMost ? text + " ..." : text;
}

void condense(const Condensing& how, const RunRecord& record) {
  std::vector<std::string> made, kept;
  for (const std::string& trace : record.traces(process_runs)) {
    const std::string summary = summary_name(trace);
    std::error_code error;
    if (!fs::is_regular_file(trace, error) || !merge(how, trace, summary)) {
      kept.push_back(trace);
      continue;
    }
    made.push_back(summary);
    if (!fs::remove(trace, error)) say("cannot remove " + trace + ": " + error.message());
  }
  if (!kept.empty())
    say("no summary could be made of" + names_text(kept) + ", which is kept. Next: flopreduce" +
        names_text(kept));
  if (!made.empty() && !how.quiet)
    say((made.size() == 1 ? "condensed the trace"
                          : "condensed " + std::to_string(made.size()) + " traces") +
        ". Next: flopreduce" + names_text(made));
}

// As the program ended.
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

}  // namespace

std::string summary_name(const std::string& trace) {
  constexpr std::string_view kTrace = ".pb";
  const bool usual = trace.ends_with(kTrace);
  return trace.substr(0, trace.size() - (usual ? kTrace.size() : 0)) + ".sum";
}

int run_and_condense(RunSocket socket, const std::function<int()>& become_program,
                     const Condensing& how) {
  const pid_t program = start(become_program);
  if (program < 0)
    throw std::system_error(errno, std::generic_category(), "cannot start a process");
  RunRecord record;
  const int status = wait_and_listen(program, socket, record);
  condense(how, record);
  if (!how.quiet)
    for (const std::string& line : record.last_words(process_runs, false)) say(line);
  return end_as(status);
}

}  // namespace flopinj
