// A command line as one tree of commands, with what its help and its manual say beside the options.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "manual/manual.h"

namespace flopinj::manual {

class CommandLine : public CLI::App {
 public:
  // `purpose`: one line for the list of commands; `text`: a paragraph for its own help.
  CommandLine(const std::string& name, std::string purpose, const std::string& text);
  // Owned by this one, and alive as long as it.
  CommandLine& add_command(const std::string& name, std::string purpose, const std::string& text);

  std::string purpose, operands, notes;
  std::vector<List> lists;
  std::vector<Entry> examples;
  std::function<int()> action;  // what it does, after parsing; it returns the exit code
};

// All commands of the tree whose root is the program; the options of the command `usual` are the
// program's own ("" : there is no such command).
std::vector<Command> describe(const CommandLine& root, const std::string& usual);

// What a choice among words must be: "'jsn' is none of text, json, csv; did you mean json?"
CLI::Validator one_of(std::vector<std::string> words);

// Takes every word; these are the usual ones, for help and completion.
CLI::Validator such_as(const std::vector<std::string>& words);

// The word of `known` that is nearest to `word`, as ": did you mean X?"; empty if none is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

struct Parsed {
  std::optional<int> exit_code;  // the program ends: after --help or --version, or with an error
  std::string error;             // one line; empty where there is none
  const CommandLine* command = nullptr;  // else: the one that was given
};
// Parses `arguments` (without the program's name). Help goes to stdout.
Parsed parse(CommandLine& root, const Program& program, const std::string& usual,
             std::vector<std::string> arguments, int usage_code);

}  // namespace flopinj::manual
