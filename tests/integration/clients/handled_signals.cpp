// Preloaded into a program: every signal that can be handled has a handler, which does nothing, and
// whatever waits in the kernel is interrupted by it (no SA_RESTART).
#include <csignal>

namespace {

__attribute__((constructor)) void handle_all() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  // The C library refuses the two real-time signals that it uses itself.
  for (int signal = 1; signal <= SIGRTMAX; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP) sigaction(signal, &action, nullptr);
}

}  // namespace
