// What a program says of itself: --help, manual page and shell completions, all from the
// definitions of its command line.
#pragma once
#include <cstddef>
#include <optional>
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

// A term and what it is: an exit code, a variable, a file, an example.
struct Entry {
  std::string term, text;
};
struct List {
  std::string title;  // "Formats (--format)"
  std::vector<Entry> entries;
};

struct Command {
  std::string name;  // "compare", "project train"; empty for what a program does without a command
  std::string purpose;   // one line
  std::string text;      // what it does, in a paragraph
  std::string operands;  // what follows the options, where they do not say it: "[--] PROGRAM"
  std::string notes;     // a paragraph behind the options
  std::vector<Option> options;
  std::vector<List> lists;
  std::vector<Entry> examples;  // a command line and what it does
};

struct Program {
  std::string name, version, purpose;  // purpose: one line, as in the list of a manual's pages
  std::vector<Command> commands;
  // An exit status is of one command where its text begins with the name and ": ".
  std::vector<Entry> exit_status, environment, files;
  std::vector<std::string> see_also;
};

// Answers `--generate FORM` ("man": roff, for man(7); "bash", "zsh", "fish": completion) and
// `--complete WORD...`. Nothing where the arguments are neither; false for an unknown form.
std::optional<bool> answer(std::ostream& out, const Program& program,
                           const std::vector<std::string>& arguments);

// What --help prints for one of the program's commands, in lines of at most `width` columns.
void write_help(std::ostream& out, const Program& program, const Command& command, size_t width);

void write_man(std::ostream& out, const Program& program);
void write_completion(std::ostream& out, const Program& program, const std::string& shell);

// What may come as the last of the words behind the program's name: first a line "files", where a
// file may come, too, or "words"; then one word a line, what it is for behind a tab.
void complete(std::ostream& out, const Program& program, std::vector<std::string> words);

// What follows an option's text in the help and on the manual page: the choices that the text does
// not name, and the value where it is not given. Empty where nothing does.
std::string values_text(const Option& option);

}  // namespace flopinj::manual
