#include "reducer.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "commands.h"
#include "printable_text.h"
#include "process.h"

namespace flopinj {

namespace {

// It says flopinj of itself, as all of the project does: by this it knows who has started it.
int become(const std::filesystem::path& program, const std::vector<std::string>& words) {
  std::vector<std::string> all = {"flopinj"};
  all.insert(all.end(), words.begin(), words.end());
  ::execv(program.c_str(), exec_words(all).data());
  say("cannot run " + program.string() + ": " + std::strerror(errno) +
      "; build or install all of flopinj");
  return kExitCannotRun;
}

}  // namespace

int become_reducer(const std::vector<std::string>& words) {
  for (const std::string& name : unknown_variables())
    say("unknown variable " + printable(name) +
        " is ignored: reports take options, such as --peak");
  return become(install_tree().reducer, words);
}

int import(const Options& options) {
  std::vector<std::string> words = {"-o", options.file};
  if (!options.gpu.empty()) words.insert(words.end(), {"--gpu", options.gpu});
  if (!options.counters.empty()) words.insert(words.end(), {"--counters", options.counters});
  if (options.force) words.emplace_back("--force");
  words.emplace_back("--");
  words.insert(words.end(), options.recordings.begin(), options.recordings.end());
  return become(install_tree().importer, words);
}

int reduce(const std::vector<std::string>& words) {
  const pid_t reducer = ::fork();
  if (reducer < 0) return kExitCannotRun;
  if (reducer == 0) {
    ::umask(077);
    ::_exit(become_reducer(words));
  }
  const int status = wait_for(reducer);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitCannotRun;
}

bool write_page(const std::string& page, const std::vector<std::string>& traces, bool force) {
  std::vector<std::string> words = {"report", "--quiet", "--format", "html", "-o", page};
  if (force) words.emplace_back("--force");
  for (const std::string& trace : traces)  // a name may begin with "-"
    words.push_back(std::filesystem::absolute(trace).string());
  // Of a damaged trace there is a page, too, which says what is missing.
  constexpr int kFine = 0, kPartial = 3;
  const int code = reduce(words);
  return code == kFine || code == kPartial;
}

}  // namespace flopinj
