// Where the trace goes: a file, a FIFO, "-" for stdout, or "unix:" and the path of a listening
// socket. What can be seen of that is looked at before a program starts: hours later it is too
// late.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace flopinj {

// What is wrong with the patterns in `name` (collector/trace/sink/sink.h has them), as one
// sentence; empty if nothing is. The injected library fills them in, in the process that it
// profiles; that process has this one's environment, so an unset variable is found here.
std::string output_name_problem(std::string_view name);

// `name` with a relative path made absolute against `folder`: the program may change its own folder
// before the trace is opened. "-" stays as it is. A "%" in `folder` is escaped, as it is no
// pattern.
std::string absolute_output_name(std::string_view name, const std::filesystem::path& folder);

// What is wrong with writing a trace under this name (absolute_output_name()), as one sentence that
// says what to do; empty if nothing is. Names are filled in as far as they are known here: host,
// variables, rank.
std::string output_problem(const std::string& name, bool force);

// A moment that is later than every file of that folder, and no later than those made from now on:
// in nanoseconds since 1970, by the clock of the folder's file system, which may be another
// machine's. Waits for that clock's next tick: some milliseconds.
int64_t output_clock_ns(const std::string& name);

}  // namespace flopinj
