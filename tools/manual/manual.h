// Manual pages and shell completions of a program, from the definitions that make its --help.
#pragma once
#include <ostream>
#include <string>
#include <vector>

namespace flopinj::manual {

struct Option {
  std::vector<std::string> names;  // "-o", "--output"; empty for a positional argument
  std::string value;               // what it takes: "FILE", "N"; empty for a flag
  std::vector<std::string> choices;
  std::string text, preset;  // what it is for; its value where it is not given
  bool required = false, many = false;
};

struct Command {
  std::string name;  // "compare", "project train"; empty for what a program does without a command
  std::string text, footer;
  std::vector<Option> options;
};

struct Program {
  std::string name, version, purpose;  // purpose: one line, as in the list of a manual's pages
  std::vector<Command> commands;
  std::vector<std::string> see_also;
};

// Writes one of "man" (roff, for man(7)), "bash", "zsh" or "fish". False for another word.
bool write(std::ostream& out, const Program& program, const std::string& form);

void write_man(std::ostream& out, const Program& program);
void write_bash(std::ostream& out, const Program& program);
void write_zsh(std::ostream& out, const Program& program);
void write_fish(std::ostream& out, const Program& program);

}  // namespace flopinj::manual
