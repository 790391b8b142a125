// Asking a process that libflopinj.so is in: the other end of common/control_address.h.
#pragma once
#include <sys/types.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace flopinj {

// The process is there, and nobody in it listens.
struct NotListening : std::runtime_error {
  using runtime_error::runtime_error;
};

// Key to value, as the process answers. Throws NotListening; std::runtime_error, with one line that
// says what to do, where there is no such process, it is another user's, in a network namespace of
// its own, or it refuses or does not answer within 30 s.
using Answer = std::map<std::string, std::string>;
Answer ask(pid_t, const std::vector<std::string>& request);

// A process as its own pid namespace and /proc know it.
struct Target {
  pid_t pid = 0;      // here
  pid_t own_pid = 0;  // there
  uint64_t pid_namespace = 0;
  bool same_network = true;
  uid_t user = 0;
};
// Throws std::runtime_error where there is none, or it cannot be looked at.
Target find_target(pid_t);

}  // namespace flopinj
