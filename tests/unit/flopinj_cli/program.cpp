#include "program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace fs = std::filesystem;

namespace {

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

void redirect(const fs::path& file, int descriptor) {
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(opened, descriptor);
}

}  // namespace

InstalledTree::InstalledTree(const std::string& name) {
  std::string folder = fs::temp_directory_path() / "flopinj_cli_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  temporary_ = fs::canonical(folder);
  root_ = temporary_ / name;
  fs::create_directories(root_ / "bin");
  fs::create_directories(simgpu());
  fs::copy_file(FLOPINJ_CLI, program());
  fs::copy_file(STAND_IN, library());
  std::ofstream(simgpu() / "libcuda.so.1").close();
}

InstalledTree::~InstalledTree() {
  std::error_code error;
  fs::remove_all(temporary_, error);
}

Outcome InstalledTree::run(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment) const {
  return run_program(program(), arguments, environment, temporary_);
}

Outcome run_program(const fs::path& program, const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment, const fs::path& folder) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = {std::string("PATH=") + std::getenv("PATH")};
  variables.insert(variables.end(), environment.begin(), environment.end());
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(variables);
  const fs::path out = folder / "stdout.txt";
  const fs::path err = folder / "stderr.txt";
  // The last words of an earlier run's watcher may still come: they go to that run's file.
  for (const fs::path& file : {out, err}) fs::remove(file);

  Outcome outcome;
  outcome.pid = fork();
  if (outcome.pid == 0) {
    redirect(out, STDOUT_FILENO);
    redirect(err, STDERR_FILENO);
    if (chdir(folder.c_str()) == 0) execve(argv[0], argv.data(), envp.data());
    _exit(99);
  }
  int status = 0;
  waitpid(outcome.pid, &status, 0);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.out = read_file(out);
  outcome.err = read_file(err);
  return outcome;
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}
