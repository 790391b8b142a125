#include "running/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

extern char** environ;

namespace flopinj {
namespace {

pid_t start(const std::vector<std::string>& command, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;  // which are not written to
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? child : -1;
}

}  // namespace

ChildOutput output_of(const std::vector<std::string>& command) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no descriptors are left");
  const pid_t child = start(command, ends[1]);
  close(ends[1]);
  ChildOutput output;
  std::array<char, 65'536> bytes;
  while (child >= 0) {
    const ssize_t count = read(ends[0], bytes.data(), bytes.size());
    if (count <= 0) break;
    output.text.append(bytes.data(), static_cast<size_t>(count));
  }
  close(ends[0]);
  if (child < 0) throw std::runtime_error(command.front() + " cannot be run");
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) output.exit_code = WEXITSTATUS(status);
  return output;
}

}  // namespace flopinj
