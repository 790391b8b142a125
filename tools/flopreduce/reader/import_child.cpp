#include "reader/import_child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "own_formats.h"
#include "support/text.h"

extern "C" char** environ;

namespace flopinj::reduce {
namespace {

constexpr const char* kProgram = "flopimport";

std::string program() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / kProgram).string();
}

// Its error is a line of its own with the name of the command in front.
std::string without_command(std::string line) {
  constexpr std::string_view kCommand = "flopinj import: ";
  if (line.starts_with(kCommand)) line.erase(0, kCommand.size());
  return line.substr(0, line.find('\n'));
}

// Its heading, or the words of ncu in front of it. A program may have printed others before.
bool may_be_nsight_compute(std::string_view first) {
  constexpr std::string_view kHeading = "\"ID\",\"Process ID\",";
  return first.starts_with("==PROF==") || first.starts_with("==WARNING==") ||
         first.find(kHeading) != first.npos;
}

}  // namespace

bool has_foreign_name(std::string_view name) { return own_format(name) != nullptr; }

// A trace begins with a line feed too, and behind it may be a bracket: it is the length of a
// packet. But then bytes follow that no text has.
bool may_be_foreign(std::string_view first) {
  if (first.starts_with("SQLite format 3")) return true;
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t at = first.find_first_not_of(kSpace);
  const bool json = at != first.npos && (first[at] == '{' || first[at] == '[');
  if (!json && !may_be_nsight_compute(first)) return false;
  constexpr size_t kLooked = 64;
  return std::ranges::none_of(first.substr(0, (json ? at : 0) + kLooked), [&](char c) {
    return static_cast<unsigned char>(c) < ' ' && kSpace.find(c) == kSpace.npos;
  });
}

ImportChild::ImportChild(const std::string& file, const std::string& counters) : file_(file) {
  std::array<int, 2> trace{-1, -1}, words{-1, -1};
  if (::pipe2(trace.data(), O_CLOEXEC) == 0 && ::pipe2(words.data(), O_CLOEXEC) == 0) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, trace[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, words[1], STDERR_FILENO);
    const std::string path = program();
    std::vector<std::string> arguments = {kProgram, "-o", "-"};
    if (!counters.empty()) arguments.insert(arguments.end(), {"--counters", counters});
    arguments.insert(arguments.end(), {"--", file});
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    if (::posix_spawn(&child_, path.c_str(), &actions, nullptr, pointers.data(), environ) != 0)
      child_ = -1;
    posix_spawn_file_actions_destroy(&actions);
  }
  for (const int end : {trace[1], words[1]})
    if (end >= 0) ::close(end);
  trace_ = trace[0];
  words_ = words[0];
  if (child_ < 0)
    error_ = printable(file) +
             ": is no trace; flopimport, which reads what other profilers recorded, cannot be run "
             "from the folder of this program";
}

bool ImportChild::finish() {
  if (child_ < 0) return false;
  std::string said;
  std::array<char, 4096> bytes;
  for (ssize_t count = 0; (count = ::read(words_, bytes.data(), bytes.size())) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    if (said.size() < bytes.size()) said.append(bytes.data(), static_cast<size_t>(count));
  }
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  error_ = without_command(said);
  if (error_.empty())
    error_ = printable(file_) + ": could not be imported" +
             (WIFSIGNALED(status) ? ": signal " + std::to_string(WTERMSIG(status)) : "");
  return false;
}

// What is not read any more ends it.
ImportChild::~ImportChild() {
  for (const int end : {trace_, words_})
    if (end >= 0) ::close(end);
  if (child_ >= 0) ::waitpid(child_, nullptr, 0);
}

}  // namespace flopinj::reduce
