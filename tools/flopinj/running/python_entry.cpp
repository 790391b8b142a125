#include "running/python_entry.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

#include "permissions.h"
#include "running/process_image.h"

namespace flopinj {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// The process's program, where it is a CPython that knows how.
std::string interpreter_of(pid_t pid) {
  constexpr int kFirst = 14;
  std::error_code error;
  const std::string program = fs::read_symlink(proc_path(pid, "exe"), error);
  std::smatch version;
  if (error || !std::regex_search(program, version, std::regex(R"(/python3\.(\d{1,3})t?$)")) ||
      std::stoi(version[1]) < kFirst)
    return "";
  for (const char* space : {"ns/mnt", "root"})
    if (fs::read_symlink(proc_path(pid, space), error) !=
        fs::read_symlink(proc_path(getpid(), space), error))
      return "";  // another file has that name here
  return program;
}

struct User {
  uid_t user = 0;
  gid_t group = 0;
};

// False: it is not one user alone, as in a set-user-id program.
bool user_of(std::string_view status, User& found) {
  const auto only = [&](std::string_view key, auto& id) {
    std::istringstream ids{std::string(value_of(status, key))};
    auto effective = id, saved = id;
    return static_cast<bool>(ids >> id >> effective >> saved) && id == effective && id == saved;
  };
  return only("Uid:", found.user) && only("Gid:", found.group);
}

// What a dynamic program, and Python in it, need to find their files.
std::vector<std::string> environment_of(pid_t pid) {
  std::vector<std::string> environment;
  std::istringstream all(proc_text(pid, "environ"));
  for (std::string variable; std::getline(all, variable, '\0');)
    if (variable.starts_with("LD_LIBRARY_PATH=") || variable.starts_with("PYTHONHOME="))
      environment.push_back(variable);
  return environment;
}

// As a text of Python.
std::string python_text(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) {
    if (letter == '\'' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + "'";
}

// A file that the process's user may read. The script removes it, whenever it runs.
std::string script_file(const User& user, const std::string& library) {
  std::string name = "/tmp/flopinj-XXXXXX";
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) return "";
  const std::string script = "import os\ntry:\n    os.unlink(" + python_text(name) +
                             ")\n    import ctypes\n    ctypes.CDLL(" + python_text(library) +
                             ").flopinj_listen()\nexcept Exception:\n    pass\n";
  const bool written =
      write(file, script.data(), script.size()) == static_cast<ssize_t>(script.size()) &&
      (geteuid() == user.user || fchown(file, user.user, user.group) == 0);
  close(file);
  if (written) return name;
  unlink(name.c_str());
  return "";
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

// Runs a program as that user, without a word. Whether it ended well in time.
bool run_as(const User& user, const std::vector<std::string>& command,
            const std::vector<std::string>& environment, Moment until) {
  constexpr auto kPause = 2ms;
  const std::vector<char*> arguments = pointers(command), variables = pointers(environment);
  const pid_t child = fork();
  if (child == 0) {
    const bool is_other = geteuid() != user.user || getegid() != user.group;
    if (is_other && (setgroups(0, nullptr) != 0 || setgid(user.group) != 0 || setuid(user.user)))
      _exit(126);
    const int nothing = open("/dev/null", O_RDWR);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, stream);
    execve(arguments[0], arguments.data(), variables.data());
    _exit(127);
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) kill(child, SIGKILL);
    std::this_thread::sleep_for(kPause);
  }
  return status == 0;
}

}  // namespace

bool enter_by_interpreter(pid_t pid, const std::string& library, Moment until) {
  constexpr auto kPause = 5ms;
  const std::string program = interpreter_of(pid);
  User user;
  if (program.empty() || !user_of(proc_text(pid, "status"), user)) return false;
  const std::string script = script_file(user, library);
  if (script.empty()) return false;
  if (!run_as(
          user,
          {program, "-S", "-P", "-c", "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])",
           std::to_string(pid), script},
          environment_of(pid), until)) {
    unlink(script.c_str());
    return false;
  }
  for (; std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(kPause)) {
    struct stat found {};
    if (stat(script.c_str(), &found) == 0) continue;
    // It has begun to load the library, or failed: then there is another way.
    const std::vector<Mapping> mappings = mappings_of(pid);
    for (const Mapping& mapping : mappings)
      if (mapping.name == library && mapping.executable) return true;
  }
  return false;
}

}  // namespace flopinj
