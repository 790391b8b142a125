#include "process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>

#include "printable_text.h"

namespace flopinj {

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 16'384> bytes;
  while (text.size() < kMostTextBytes && file.read(bytes.data(), bytes.size()).gcount() > 0)
    text.append(bytes.data(), static_cast<size_t>(file.gcount()));
  return text;
}

std::string proc_path(pid_t pid, std::string_view file) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(file);
}

std::string proc_text(pid_t pid, std::string_view file) { return file_text(proc_path(pid, file)); }

std::string_view value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    return line.substr(std::min(line.size(), line.find_first_not_of(" \t")));
  }
  return {};
}

std::string process_name(pid_t pid) { return "process " + std::to_string(pid); }

void refuse(pid_t pid, const std::string& why) {
  throw std::runtime_error(process_name(pid) + " " + why);
}

bool process_runs(pid_t pid) {
  const std::string status = proc_text(pid, "status");
  const std::string_view state = value_of(status, "State:");
  return !state.empty() && state[0] != 'Z' && state[0] != 'X';
}

std::vector<char*> exec_words(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 65'536> bytes;
  for (ssize_t count = 0; (count = ::read(fd, bytes.data(), bytes.size())) > 0;)
    text.append(bytes.data(), static_cast<size_t>(count));
  ::close(fd);
  return text;
}

std::string output_of(const std::vector<std::string>& command) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no descriptors are left");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, command.front().c_str(), &actions, nullptr,
                                  exec_words(command).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  const std::string output = read_to_end(ends[0]);
  if (failed != 0) throw std::runtime_error(command.front() + " cannot be run");
  wait_for(child);
  return output;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// One write for each line.
void say(const std::string& line) {
  const std::string text = "flopinj: " + printable(line) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace flopinj
