#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "in_child.h"
#include "probe.h"

namespace probe {

std::string part;

void in_child(const std::string& probe, const std::string& part) {
  constexpr auto kMost = std::chrono::seconds(3);
  constexpr auto kLookEvery = std::chrono::milliseconds(10);
  std::string program = "/proc/self/exe", name = probe, what = part;
  char* arguments[] = {program.data(), name.data(), what.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0)
    return say(part, "could not be started");
  const auto give_up = std::chrono::steady_clock::now() + kMost;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > give_up) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return say(part, "hung and was killed");
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  say(part, (WIFSIGNALED(status) ? "crashed with signal " + std::to_string(WTERMSIG(status))
                                 : "ended with " + std::to_string(WEXITSTATUS(status)))
                .c_str());
}

}  // namespace probe
