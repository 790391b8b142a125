// The commands of flopreduce: `flopinj NAME` is `flopreduce NAME`, and both say the same of them.
#pragma once
#include <array>
#include <string_view>

namespace flopinj {

struct ReducerCommand {
  const char *name, *purpose;  // purpose: one line
};

inline constexpr std::array kReducerCommands = {
    ReducerCommand{"report", "what the traces hold"},
    ReducerCommand{"anonymize", "a trace without names, for others to look at"},
    ReducerCommand{"compare", "what changed between two recordings"},
    ReducerCommand{"explain", "where one figure comes from"},
    ReducerCommand{"merge", "traces and summaries into one summary"},
    ReducerCommand{"peaks", "the table of GPUs' peaks, with sources"},
    ReducerCommand{"project", "compute of a whole training run, time of an inference"},
    ReducerCommand{"query", "one SELECT on the tables of a report"},
    ReducerCommand{"rules", "the rules that tell phases apart, as a rule file"},
    ReducerCommand{"schema", "the JSON schema of a report"},
    ReducerCommand{"tables", "the tables of a report, and their columns"}};

// One of them, whose name is known when it is compiled.
consteval ReducerCommand reducer_command(std::string_view name) {
  for (const ReducerCommand& command : kReducerCommands)
    if (command.name == name) return command;
  throw "no such command";
}

}  // namespace flopinj
