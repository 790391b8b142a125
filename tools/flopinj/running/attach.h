// `flopinj attach`, `detach` and `status`: recordings in a process that runs already.
#pragma once
#include <sys/types.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "install_tree.h"
#include "running/control_client.h"

namespace flopinj {

struct AttachOptions {
  pid_t pid = 0;
  // By variable, as in RunOptions.
  std::map<std::string, std::vector<std::string>> given;
  bool enter = true;  // a process that the library is not in, too (enter_process.h)
};

// Each returns an exit code, and throws std::runtime_error with one line that says what to do.
int attach(const AttachOptions&, const InstallTree&);
int detach(pid_t);
int status(pid_t, const InstallTree&, bool json);

// A process's answer to "status", for people and for programs.
std::string status_text(pid_t, const Answer&);
nlohmann::json status_json(const Answer&);
// One line of ASCII: what is no text of UTF-8 is replaced.
std::string json_line(const nlohmann::json&);

}  // namespace flopinj
