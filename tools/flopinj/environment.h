// Changes to the environment of the program to run, which can be applied or printed.
#pragma once
#include <string>
#include <vector>

namespace flopinj {

class Environment {
 public:
  void set(std::string name, std::string value);
  // Puts `value` before what the variable holds, separated by a colon. For LD_LIBRARY_PATH and
  // LD_PRELOAD.
  void prepend(std::string name, std::string value);

  // Changes this process's own environment. Not to be called with other threads running.
  void apply() const;

  // Lines for a POSIX shell that make the same changes there.
  std::string shell_exports() const;

 private:
  struct Change {
    std::string name, value;
    bool keep_old;
  };
  std::vector<Change> changes_;
};

}  // namespace flopinj
