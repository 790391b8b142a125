// A recording while it goes on, by its own status and by the report that flopreduce makes of its
// growing trace.
#pragma once
#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "commands.h"
#include "manual/command_line.h"

namespace flopinj {

using Json = nlohmann::json;

// The status, and the report where there is a trace that can be read from here.
struct LiveReport {
  Json status;
  std::string text;  // flopreduce's, in the form that was asked for; empty: see `why_none`
  std::string why_none;
};

// `form`: flopreduce's options. A process in a container is read through /proc. Throws as ask().
LiveReport live_report(pid_t pid, const std::vector<std::string>& form);
// The status for people.
std::string status_text(pid_t pid, const Json& status);
// One line of ASCII: what is no text of UTF-8 is replaced.
std::string json_line(const Json& json);
// `format`: printf's, of one double.
std::string formatted(const char* format, double value);

// Those that are recorded or could be, with their command lines, the last ids first.
std::vector<manual::Entry> processes_to_look_at();
// These, and behind them others that have loaded CUDA's driver.
std::vector<manual::Entry> processes_to_attach_to();
// Nothing to look at, and what to do about it.
[[noreturn]] void refuse_none();
// The process that was named. Else the only one that there is to look at, or an error that names
// all.
pid_t chosen(const Options& options);
// The process that was named. Else an error that names all that can be attached to, or be looked
// at: what changes a process is never done to one that nobody named.
pid_t named_one(const Options& options, bool to_attach);

}  // namespace flopinj
