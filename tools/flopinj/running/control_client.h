// Asking a process that libflopinj.so is in: the other end of common/control_address.h.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace flopinj {

// The process is there, and does not listen.
struct NotListening : std::runtime_error {
  using runtime_error::runtime_error;
};

// Key to value, as a process has answered. The process may be hostile: a text is for a terminal
// only as text() gives it, and a number is read with care.
class Answer {
 public:
  explicit Answer(pid_t pid, std::map<std::string, std::string> values = {})
      : pid_(pid), values_(std::move(values)) {}

  const std::map<std::string, std::string>& values() const { return values_; }  // as they came
  bool has(const std::string& key) const { return values_.contains(key); }
  // As it came, and fit to be shown (printable_text.h); empty where it is not there.
  std::string raw(const std::string& key) const;
  std::string text(const std::string& key) const;
  // 0 where it is not there. Throw std::runtime_error, with one line, where it is no such number.
  uint64_t count(const std::string& key) const;
  double number(const std::string& key) const;

 private:
  pid_t pid_;
  std::map<std::string, std::string> values_;
};

// Throws NotListening; std::runtime_error, with one line that says what to do, where there is no
// such process, the kernel does not let this user read it, it is in a network namespace of its own,
// has a library of another version, or refuses, does not answer within 30 s or answers too much.
Answer ask(pid_t, const std::vector<std::string>& request);

}  // namespace flopinj
