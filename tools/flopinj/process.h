// Processes: what /proc says of one, its name in messages, its start and its end.
#pragma once
#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

// No more of a text is read: a process may make texts of its own memory of any size.
inline constexpr size_t kMostTextBytes = size_t{4} << 20;

// The text is empty where it cannot be read. "/proc/PID/FILE": `file` may be "task/TID/status".
std::string file_text(const std::string& path);
std::string proc_path(pid_t, std::string_view file);
std::string proc_text(pid_t, std::string_view file);

// What follows `key` in its line, without leading blanks; empty if no line starts with it.
std::string_view value_of(std::string_view text, std::string_view key);

// "process 4711".
std::string process_name(pid_t);
// Throws std::runtime_error: that name, a blank and `why`.
[[noreturn]] void refuse(pid_t, const std::string& why);

// A process that has ended, and that its parent has not waited for, does not run.
bool process_runs(pid_t);

// As execv() takes them, which does not write to them.
std::vector<char*> exec_words(const std::vector<std::string>&);

// All that comes from a descriptor, which is closed then.
std::string read_to_end(int fd);

// What a program prints to stdout. It is looked for as by a shell. Throws std::runtime_error with
// one line where it cannot be run.
std::string output_of(const std::vector<std::string>& command);

// The end of a child, as waitpid() has it.
int wait_for(pid_t child);

// A line on standard error; a terminal that is gone is no matter.
void say(const std::string& line);

}  // namespace flopinj
