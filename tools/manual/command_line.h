// A command line as one tree of commands, and what a program says of itself, all from that tree:
// --help, a manual page and shell completion.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace flopinj::manual {

// A term and what it is: an exit code, a variable, a file, an example.
struct Entry {
  std::string term, text;
};
struct List {
  std::string title;  // "Formats (--format)"
  std::vector<Entry> entries;
};

// Options are in groups (CLI::Option::group), which help and manual have in the order of `groups`.
// Those of the group kExpert are in --help only with --help-all, where the command has that.
inline constexpr const char* kExpert = "For experts";

class CommandLine : public CLI::App {
 public:
  // `purpose`: one line for the list of commands; `text`: a paragraph for its own help.
  CommandLine(const std::string& name, std::string purpose, const std::string& text);
  // Owned by this one, and alive as long as it.
  CommandLine& add_command(const std::string& name, std::string purpose, const std::string& text);

  std::string purpose;
  std::string operands;       // what follows the options, where they do not say it: "[--] PROGRAM"
  std::string notes;          // a paragraph behind the options
  std::string words_instead;  // what a word too many may be meant for; "*" is the word
  std::vector<std::string> groups{"Options"};
  std::vector<List> lists;
  std::vector<Entry> examples;  // a command line and what it does
  // What may come as the first positional argument, for completion; empty: files.
  std::function<std::vector<Entry>()> first_words;
  std::function<int()> action;  // what it does, after parsing; it returns the exit code
};

// Options of other programs, and where their like is here: "--limit", "here it is --top N". That is
// said by commands that have the option --top, and by all where `here` names a whole line instead.
// "--sections all" is a value that an option does not have.
struct OthersOption {
  std::vector<std::string> options;
  std::string here;
  std::vector<std::string> commands = {};  // that say it; empty: all that have options
};

// The root of the tree, with what is said beside its commands.
struct Program {
  CommandLine& line;
  std::string usual;             // the command whose options are the program's own; "": none
  std::string version, purpose;  // purpose: one line, as in the list of a manual's pages
  // An exit status is of one command where its text begins with the name and ": ".
  std::vector<Entry> exit_status, environment, files;
  std::string see_also;                      // another program
  std::vector<OthersOption> others_options;  // the first that fits a command is said there
};

// The word of `known` that is nearest to `word`, as ": did you mean X?"; empty if none is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

// What a choice among words must be: "'jsn' is none of text, json, csv; did you mean json?"
CLI::Validator one_of(std::vector<std::string> words);

// Accepts every word. Help and completion show the usual words: only they call `words`.
CLI::Validator such_as(std::function<std::vector<std::string>()> words);

// `help COMMAND` and `COMMAND help` as `COMMAND --help`; other words as they are.
std::vector<std::string> help_last(std::vector<std::string> arguments);

struct Parsed {
  std::optional<int> exit_code;  // the program ends: after --help or --version, or with an error
  std::string error;             // one line; empty where there is none
  const CommandLine* command = nullptr;  // else: the one that was given
};
// Parses `arguments` (without the program's name). Help goes to stdout.
Parsed parse(const Program& program, std::vector<std::string> arguments, int usage_code);

// Answers `--generate FORM` ("man": roff, for man(7); "bash", "zsh", "fish": completion) and
// `--complete WORD...`. Nothing where the arguments are neither; false for an unknown form.
std::optional<bool> answer(std::ostream& out, const Program& program,
                           const std::vector<std::string>& arguments);

}  // namespace flopinj::manual
