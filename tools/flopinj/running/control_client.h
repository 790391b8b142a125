// Asking a process that libflopinj.so is in: the other end of common/control_address.h.
#pragma once
#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace flopinj {

// The process is there, and does not listen.
struct NotListening : std::runtime_error {
  using runtime_error::runtime_error;
};

// What a process has answered: `state`, `output` and `mode` are texts as they came, `seconds` and
// `covered` finite numbers, all else counts. Throws NotListening; std::runtime_error, with one line
// that says what to do, where there is no such process, the kernel does not let this user read it,
// it is in a network namespace of its own, has a library of another version, or refuses, does not
// answer within 30 s, answers too much or what is not understood.
nlohmann::json ask(pid_t, const std::vector<std::string>& request);

// The processes that ask() would reach, the last ids first. A process that this user may not
// read is left out.
std::vector<pid_t> listening_processes();
// All that there are, the last ids first.
std::vector<pid_t> all_processes();

// Throws std::runtime_error, with what to do, where it is in another network namespace than we are:
// its socket is not to be reached from here.
void refuse_other_network(pid_t);

// A text of an answer, fit to be shown: the process may be hostile. Empty where it is not there.
std::string shown(const nlohmann::json& answer, const char* key);

}  // namespace flopinj
