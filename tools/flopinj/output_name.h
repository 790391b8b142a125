// The name of the trace: a file, a FIFO, "-" for stdout, or "unix:" and the path of a listening
// socket.
#pragma once
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

}  // namespace flopinj
