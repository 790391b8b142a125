#include "manual/command_line.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "edit_distance.h"

namespace flopinj::manual {
namespace {

// --- The commands and options, as every page has them --------------------------------------------

struct Option {
  std::vector<std::string> names;  // "-o", "--output"; empty for a positional argument
  std::string value;               // what it takes: "FILE", "N"; empty for a flag
  std::vector<std::string> choices;
  std::string text, preset;  // what it is for; its value where it is not given
  std::string group;
  bool required = false, many = false;
};

struct Command {
  std::string name;  // "compare", "project train"; empty for what a program does without a command
  const CommandLine* line;
  std::vector<Option> options;
  std::vector<const CommandLine*> below;
};

// What an option takes, from CLI11's words for it: "TEXT:{a,b}", "UINT:INT in [1 - 9]",
// "TEXT:LIST".
void describe_value(const std::string& type, Option& option) {
  static const std::map<std::string, const char*> kKinds = {
      {"TEXT", "VALUE"}, {"", "VALUE"}, {"UINT", "N"}, {"INT", "N"}, {"FLOAT", "N"}};
  // CLI11's own kinds and rules have a colon between. A name that we gave may have colons itself:
  // behind it are rules only where they look like CLI11's.
  const bool own_kind = kKinds.contains(type.substr(0, type.find(':')));
  const size_t range = type.find(" in [");
  const size_t colon =
      own_kind ? type.find(':')
               : std::min(type.find(":{"), range == type.npos ? range : type.rfind(':', range));
  const std::string rule = colon == type.npos ? "" : type.substr(colon + 1);
  option.value = own_kind ? kKinds.at(type.substr(0, colon)) : type.substr(0, colon);
  if (rule.starts_with("{"))
    option.choices = CLI::detail::split(rule.substr(1, rule.find('}') - 1), ',');
  else if (!rule.empty() && rule.find(' ') == rule.npos)
    option.value = rule;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

Option describe(const CLI::Option& from) {
  Option option;
  option.names = names_of(from);
  option.text = from.get_description();
  option.preset = from.get_default_str();
  option.required = from.get_required();
  option.many = from.get_items_expected_max() > 1;
  option.group = from.get_group();
  if (from.get_items_expected_max() > 0) describe_value(from.get_type_name(), option);
  if (from.get_positional()) option.value = from.get_single_name();
  return option;
}

std::vector<const CommandLine*> below(const CommandLine& line) {
  std::vector<const CommandLine*> commands;
  for (const CLI::App* child : line.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(dynamic_cast<const CommandLine*>(child));
  return commands;
}

void add_commands(const Program& program, const CommandLine& line, const std::string& name,
                  std::vector<Command>& all) {
  const bool usual = name == program.usual;
  Command command{usual ? "" : name, &line, {}, below(usual ? program.line : line)};
  std::erase_if(command.below, [&](const CommandLine* one) { return one == &line; });
  for (const std::string& group : line.groups)
    for (const CLI::Option* option : line.get_options())
      if (option->get_group() == group) command.options.push_back(describe(*option));
  if (usual || &line != &program.line) all.push_back(std::move(command));
  for (const CommandLine* child : below(line))
    add_commands(program, *child, (name.empty() ? "" : name + " ") + child->get_name(), all);
}

// Each before those below it.
std::vector<Command> commands_of(const Program& program) {
  std::vector<Command> all;
  add_commands(program, program.line, "", all);
  return all;
}

std::string joined(const std::vector<std::string>& words, const std::string& between = ", ") {
  return CLI::detail::join(words, between);
}

std::string full_name(const Program& program, const Command& command) {
  return program.line.get_name() + (command.name.empty() ? "" : " " + command.name);
}

// What follows an option's text: the choices that the text does not name, and the value where it is
// not given. Empty where nothing does.
std::string values_text(const Option& o) {
  constexpr size_t kMost = 30;  // that help has room for; completion knows them all
  const bool named =
      o.choices.size() > kMost || std::ranges::all_of(o.choices, [&](const std::string& choice) {
        return o.text.find(choice) != o.text.npos;
      });
  std::string text;
  if (!named)
    for (size_t i = 0; i < o.choices.size(); ++i)
      text += (i == 0 ? "" : i + 1 < o.choices.size() ? ", " : " or ") + o.choices[i];
  if (!o.preset.empty()) text += (text.empty() ? "" : "; ") + o.preset + " if not given";
  return text.empty() ? "" : " (" + text + ")";
}

// The positional arguments, as in a synopsis; `styled` is what a page makes of a name.
template <class Style>
std::string arguments_text(const Command& command, const Style& styled) {
  std::string text;
  for (const Option& o : command.options)
    if (o.names.empty())
      text += (o.required ? " " : " [") + styled(o.value) + (o.many ? "..." : "") +
              (o.required ? "" : "]");
  return text;
}

// --- Help ----------------------------------------------------------------------------------------

constexpr size_t kIndent = 2;  // of terms
constexpr size_t kTextColumn = 26;

std::string spaces(size_t n) { return std::string(n, ' '); }

// Words of `text` from column `at` on, in lines from `left` on. Lines of the text stay lines.
void wrapped(std::ostream& out, const std::string& text, size_t at, size_t left, size_t width) {
  std::istringstream lines(text);
  bool line_begins = true;
  const auto break_line = [&] {
    out << '\n' << spaces(left);
    at = left;
    line_begins = true;
  };
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    for (std::string word; words >> word; line_begins = false) {
      if (!line_begins && at + 1 + word.size() > width) break_line();
      if (!line_begins) out << ' ', ++at;
      out << word;
      at += word.size();
    }
    if (!lines.eof()) break_line();
  }
  out << '\n';
}

// The texts begin in one column, near to the terms but not before `column`.
void entries(std::ostream& out, const std::string& title, const std::vector<Entry>& list,
             size_t width, size_t column = 0) {
  if (list.empty()) return;
  for (const Entry& e : list) column = std::max(column, kIndent + e.term.size() + 2);
  column = std::min(column, kTextColumn);
  out << '\n' << title << ":\n";
  for (const Entry& e : list) {
    out << spaces(kIndent) << e.term;
    const size_t at = kIndent + e.term.size();
    out << (at + 2 > column ? "\n" + spaces(column) : spaces(column - at));
    wrapped(out, e.text, column, column, width);
  }
}

// "-o, --output FILE"; an option without a short name is under the other long names.
std::string names_text(const Option& o) {
  if (o.names.empty()) return o.value + (o.many ? "..." : "");
  return (o.names.front().starts_with("--") ? "    " : "") + joined(o.names) +
         (o.value.empty() ? "" : " " + o.value);
}

std::vector<Entry> exit_status_of(const Program& program, const Command& command) {
  const auto commands = below(program.line);
  std::vector<Entry> list;
  for (const Entry& e : program.exit_status) {
    const std::string of = e.text.substr(0, e.text.find(": "));
    bool all = false, own = false;  // it is of all commands, or of this one among others
    for (const std::string& name : CLI::detail::split(of, ',')) {
      const std::string word = CLI::detail::trim_copy(name);
      all = all || std::ranges::find(commands, word, &CommandLine::get_name) == commands.end();
      own = own || word == command.name;
    }
    if (all) list.push_back(e);
    if (!all && own) list.push_back({e.term, e.text.substr(of.size() + 2)});
  }
  return list;
}

void write_help(std::ostream& out, const Program& program, const Command& command, bool all,
                size_t width) {
  const CommandLine& line = *command.line;
  const std::string name = full_name(program, command);
  const std::string arguments = arguments_text(command, std::identity());
  wrapped(out,
          "Usage: " + name + " [OPTION...]" + arguments +
              (arguments.empty() && !command.below.empty() ? " COMMAND" : "") +
              (line.operands.empty() ? "" : " " + line.operands),
          0, 7, width);
  out << '\n';
  wrapped(out, line.get_description(), 0, 0, width);
  std::vector<Entry> next, positional;
  for (const CommandLine* child : command.below)
    next.push_back({child->get_name(), child->purpose});
  const auto entry = [](const Option& o) { return Entry{names_text(o), o.text + values_text(o)}; };
  for (const Option& o : command.options)
    if (o.names.empty()) positional.push_back(entry(o));
  entries(out, "Commands (" + name + " COMMAND --help)", next, width);
  entries(out, "Arguments", positional, width, kTextColumn);
  const bool hides = !all && line.get_help_all_ptr() != nullptr;
  for (const std::string& group : line.groups) {
    if (hides && group == kExpert) continue;
    std::vector<Entry> named;
    for (const Option& o : command.options)
      if (!o.names.empty() && o.group == group) named.push_back(entry(o));
    entries(out, group, named, width, kTextColumn);
  }
  if (hides) out << "\nMore options: " << name << " --help-all\n";
  for (const List& list : line.lists) entries(out, list.title, list.entries, width);
  if (!line.notes.empty()) {
    out << '\n';
    wrapped(out, line.notes, 0, 0, width);
  }
  if (!line.examples.empty()) out << "\nExamples:\n";
  for (const Entry& e : line.examples) {
    out << spaces(kIndent) << e.term << '\n' << spaces(2 * kIndent + 2);
    wrapped(out, e.text, 2 * kIndent + 2, 2 * kIndent + 2, width);
  }
  entries(out, "Exit status", exit_status_of(program, command), width);
}

// --- The manual page -----------------------------------------------------------------------------

// Text for roff: nothing in it is a request or an escape. Quotes that are only quotes, and
// hyphens that can be copied and searched for.
std::string roff(const std::string& text) {
  static const std::map<char, const char*> kEscapes = {
      {'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  std::string out;
  for (const char c : text) {
    if ((out.empty() || out.back() == '\n') && (c == '.' || c == '\'')) out += "\\&";
    const auto escape = kEscapes.find(c);
    out += escape != kEscapes.end() ? escape->second : std::string(1, c);
  }
  return out;
}

std::string capitals(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

void roff_entries(std::ostream& out, const char* section, const std::string& title,
                  const std::vector<Entry>& list) {
  if (list.empty()) return;
  out << section << roff(title) << '\n';
  for (const Entry& e : list) out << ".TP\n" << bold(e.term) << '\n' << roff(e.text) << '\n';
}

void details(std::ostream& out, const Command& command) {
  out << roff(command.line->get_description()) << '\n';
  const bool grouped = command.line->groups.size() > 1;
  const std::string* group = nullptr;
  for (const Option& o : command.options) {
    if (grouped && !o.names.empty() && (group == nullptr || *group != o.group))
      out << ".SS " << roff(*(group = &o.group)) << '\n';
    out << ".TP\n";
    for (const std::string& name : o.names) out << (name == o.names[0] ? "" : ", ") << bold(name);
    if (!o.value.empty()) out << (o.names.empty() ? "" : " ") << italic(o.value);
    out << '\n' << roff((o.text.empty() ? "-" : o.text) + values_text(o)) << ".\n";
  }
  for (const List& list : command.line->lists) roff_entries(out, ".SS ", list.title, list.entries);
  if (!command.line->notes.empty()) out << ".PP\n" << roff(command.line->notes) << '\n';
}

void write_man(std::ostream& out, const Program& program) {
  const std::vector<Command> commands = commands_of(program);
  const std::string name = program.line.get_name();
  out << ".\\\" Made from the definitions of the command line.\n.TH " << capitals(name)
      << " 1 \"\" \"flopinj " << roff(program.version) << "\" \"flopinj\"\n.nh\n.ad l\n.SH NAME\n"
      << roff(name) << " \\- " << roff(program.purpose) << "\n.SH SYNOPSIS\n";
  for (const Command& command : commands) {
    const std::string& operands = command.line->operands;
    out << (&command == &commands.front() ? "" : ".br\n") << ".B "
        << roff(full_name(program, command)) << "\n[" << italic("OPTION") << "...]"
        << arguments_text(command, italic) << (operands.empty() ? "" : " " + roff(operands))
        << '\n';
  }
  for (const Command& command : commands) {
    out << ".SH "
        << (command.name.empty() ? "DESCRIPTION" : capitals(roff(full_name(program, command))))
        << '\n';
    details(out, command);
  }
  roff_entries(out, ".SH ", "EXIT STATUS", program.exit_status);
  roff_entries(out, ".SH ", "ENVIRONMENT", program.environment);
  roff_entries(out, ".SH ", "FILES", program.files);
  out << ".SH EXAMPLES\n";
  for (const Command& command : commands)
    for (const Entry& e : command.line->examples)
      out << ".PP\n"
          << roff(capitals(e.text.substr(0, 1)) + e.text.substr(1)) << ":\n.PP\n.RS 4\n.nf\n"
          << roff(e.term) << "\n.fi\n.RE\n";
  out << ".SH SEE ALSO\n.BR " << roff(program.see_also) << " (1)\n";
}

// --- Completion ----------------------------------------------------------------------------------

// The program itself says what may come next, so that the shells' own scripts only ask it:
// `PROGRAM --complete WORD...`.
constexpr const char* kBash = R"(# Completion of PROGRAM for bash.
_PROGRAM() {
  local current=${COMP_WORDS[COMP_CWORD]} mode
  { read -r mode; mapfile -t COMPREPLY; } < <(
    "${COMP_WORDS[0]}" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
  COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
  if [[ $mode == files ]]; then
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "${current#=}")
  fi
}
complete -o filenames -o bashdefault -o default -F _PROGRAM PROGRAM
)";

constexpr const char* kZsh = R"(#compdef PROGRAM
local -a lines=("${(@f)$($words[1] --complete "${(@)words[2,CURRENT]}" 2> /dev/null)}")
local -a known=("${(@)${(@)lines[2,-1]//:/\\:}/$'\t'/:}")
(( $#lines < 2 )) || _describe PROGRAM known
[[ $lines[1] != files ]] || _files
)";

constexpr const char* kFish = R"(# Completion of PROGRAM for fish.
function __complete_PROGRAM
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l lines ($words[1] --complete $words[2..] "$current" 2> /dev/null)
  test "$lines[1]" = files; and __fish_complete_path "$current"
  printf '%s\n' $lines[2..]
end
complete -c PROGRAM -f -a '(__complete_PROGRAM)'
)";

// One line, as long as a menu of a shell has room for.
std::string brief(std::string text) {
  constexpr size_t kMost = 100;
  std::ranges::replace(text, '\n', ' ');
  return text.size() > kMost ? text.substr(0, text.rfind(' ', kMost)) + " ..." : text;
}

// What may come as the last of the words behind the program's name: first a line "files", where a
// file may come, too, or "words"; then one word a line, what it is for behind a tab.
void complete(std::ostream& out, const Program& program, std::vector<std::string> words) {
  // bash gives --option=value as three words.
  if (!words.empty() && words.back() == "=") words.back().clear();
  std::erase(words, "=");
  std::string current = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  const bool others = std::ranges::find(words, "--") != words.end();  // words of another program
  const std::vector<Command> commands = commands_of(program);
  auto command = std::ranges::find(commands, "", &Command::name);
  std::string name;
  size_t named_words = 0;
  for (const std::string& word : words) {  // commands come first
    name += (name.empty() ? "" : " ") + word;
    const auto named = std::ranges::find(commands, name, &Command::name);
    if (named == commands.end()) break;
    command = named;
    ++named_words;
  }
  std::string before = words.empty() ? "" : words.back(), glued;
  if (const size_t equals = current.find('=');
      current.starts_with("--") && equals != current.npos) {
    before = current.substr(0, equals);
    glued = before + "=";
  }
  std::vector<Entry> known;
  bool files = true;
  const auto add_values = [&](const Option& option) {
    for (const std::string& choice : option.choices) known.push_back({glued + choice, ""});
  };
  const std::vector<Option> options = others ? std::vector<Option>() : command->options;
  const auto valued = std::ranges::find_if(options, [&](const Option& o) {
    return !o.value.empty() && std::ranges::find(o.names, before) != o.names.end();
  });
  if (valued != options.end()) {
    add_values(*valued);
    files = known.empty();
  } else if (current.starts_with("-")) {
    files = false;
    for (const Option& o : options)
      for (const std::string& option : o.names) known.push_back({option, brief(o.text)});
  } else if (!others && words.size() == named_words && command->line->first_words) {
    known = command->line->first_words();
    for (Entry& entry : known) entry.text = brief(entry.text);
    files = false;
  } else if (!others) {
    for (const CommandLine* next : command->below)
      known.push_back({next->get_name(), next->purpose});
    for (const Option& o : options)
      if (o.names.empty()) add_values(o);
  }
  out << (files ? "files" : "words") << '\n';
  for (const Entry& e : known)
    if (e.term.starts_with(current)) out << e.term << (e.text.empty() ? "" : "\t" + e.text) << '\n';
}

// --- Parsing -------------------------------------------------------------------------------------

// The command that was given last, and its name in full.
const CommandLine& innermost(const CommandLine& root, std::string& name) {
  const CommandLine* line = &root;
  for (auto given = line->get_subcommands(); !given.empty(); given = line->get_subcommands()) {
    line = dynamic_cast<const CommandLine*>(given.back());
    name += (name.empty() ? "" : " ") + line->get_name();
  }
  return *line;
}

// ", as in flopinj compare a.pb b.pb"; empty where the command has no example.
std::string as_in(const CommandLine& line) {
  return line.examples.empty() ? "" : ", as in " + line.examples.front().term;
}

// "compare takes A B": of a command that was given a word too many, or one too few.
std::string takes(const CommandLine& line) {
  Command command{line.get_name(), &line, {}, {}};
  for (const CLI::Option* option : line.get_options()) command.options.push_back(describe(*option));
  const std::string arguments = arguments_text(command, std::identity());
  return line.get_name() + " takes" + (arguments.empty() ? " no such word" : arguments);
}

// Options without a group are hidden: they are refused.
bool has_option(const CommandLine& line, const std::string& option) {
  return std::ranges::any_of(line.get_options(), [&](const CLI::Option* known) {
    return !known->get_group().empty() && std::ranges::count(names_of(*known), option) > 0;
  });
}

// The commands below `line` that have an option, whatever option `line` itself has.
std::vector<std::string> commands_with(const CommandLine& line, const std::string& option) {
  std::vector<std::string> names;
  for (const CommandLine* command : below(line)) {
    if (has_option(*command, option)) names.push_back(command->get_name());
    for (const std::string& name : commands_with(*command, option))
      names.push_back(command->get_name() + " " + name);
  }
  return names;
}

// "flopinj run", and "flopreduce" of what it does without a command.
std::string typed_name(const Program& program, const std::string& command) {
  return program.line.get_name() + (command == program.usual ? "" : " " + command);
}

// "--top" of "here it is --top N"; empty: no option is named.
std::string option_named(const std::string& here) {
  constexpr std::string_view kHere = "here it is ";
  if (!here.starts_with(std::string(kHere) + "-")) return "";
  return here.substr(kHere.size(), here.find_first_of(" ,", kHere.size()) - kHere.size());
}

// The like of another program's option, empty where none is known. `named`: only what is said of
// this very command.
std::string place_of_others(const Program& program, const CommandLine& line,
                            const std::string& option, bool named) {
  std::string elsewhere;
  for (const OthersOption& other : program.others_options) {
    const bool fits = std::ranges::count(other.commands, line.get_name()) > 0;
    if (std::ranges::count(other.options, option) == 0 ||
        (!fits && (named || !other.commands.empty())))
      continue;
    const std::string like = option_named(other.here);
    if (like.empty() || has_option(line, like)) return ": " + other.here;
    const std::vector<std::string> commands = commands_with(program.line, like);
    if (elsewhere.empty() && !commands.empty())
      elsewhere = ": it is " + like + " of " + typed_name(program, commands.front());
  }
  return elsewhere;
}

// "--format" of "--output-format", and "--job" of "--job-name": an option that begins or ends so;
// and "--batch-size" of "--batch", which it begins with.
std::string named_by_part(const std::string& option, const std::vector<std::string>& options) {
  constexpr size_t kDashes = 2;
  const auto known = [&](const std::string& name) {
    return name.size() > kDashes + 2 && std::ranges::count(options, name) > 0;
  };
  for (size_t at = option.find('-', kDashes); at != option.npos; at = option.find('-', at + 1)) {
    if (const std::string last = "--" + option.substr(at + 1); known(last)) return last;
    if (const std::string first = option.substr(0, at); known(first)) return first;
  }
  for (const std::string& name : options)
    if (known(option.size() > kDashes + 2 ? name : "") && name.starts_with(option)) return name;
  return "";
}

// Where an option is that `line` does not have.
std::string place_of(const Program& program, const CommandLine& line, const std::string& option,
                     const std::vector<std::string>& options) {
  if (std::string here = place_of_others(program, line, option, true); !here.empty()) return here;
  const bool has_none =
      line.operands.empty() && std::ranges::all_of(line.get_options(), [&](const auto* known) {
        return known == line.get_help_ptr() || known->get_positional();
      });
  const auto commands_below = line.get_subcommands([](const CLI::App*) { return true; });
  if (has_none && !commands_below.empty()) {
    std::vector<std::string> below;
    for (const CLI::App* command : commands_below) below.push_back(command->get_name());
    return "; options go behind " + joined(below, " or ") + ": " +
           typed_name(program, line.get_name() + " " + below.front()) + " --help";
  }
  if (has_none) return ": " + line.get_name() + " has no options: leave it out";
  if (std::string here = place_of_others(program, line, option, false); !here.empty()) return here;
  for (const CLI::Option* known : line.get_options())  // --html, say, where --format takes it
    if (option.size() > 2 && std::ranges::count(describe(*known).choices, option.substr(2)) > 0)
      return ": did you mean " + names_of(*known).back() + " " + option.substr(2) + "?";
  const std::vector<std::string> commands = commands_with(program.line, option);
  if (!commands.empty()) {
    const bool before = &line == &program.line;  // of the root
    return ": it is an option of " + joined(commands) +
           (before ? "; options go behind the command: " : ", as in ") +
           typed_name(program, commands.front()) + " " + option;
  }
  const std::string near = did_you_mean(option, options);
  if (!near.empty()) return near;
  if (const std::string part = named_by_part(option, options); !part.empty())
    return ": did you mean " + part + "?";
  if (line.get_prefix_command() && !line.examples.empty())
    return "; an option of the program goes behind it: " + line.examples.front().term + " " +
           option;
  constexpr size_t kShown = 8;
  std::vector<std::string> usual;  // of its first group
  for (const CLI::Option* known : line.get_options())
    if (!known->get_lnames().empty() && known->get_group() == line.groups.front() &&
        known != line.get_help_ptr())
      usual.push_back("--" + known->get_lnames().front());
  usual.resize(std::min(usual.size(), kShown));
  return usual.empty() ? "" : "; the usual ones are " + joined(usual);
}

// CLI11's words for a value that an option cannot have, in words that say what it takes.
std::string words_of_value(const Program& program, const CommandLine& line,
                           const std::string& problem) {
  // "--sections: 'all' is none of total, phases"
  constexpr std::string_view kQuote = ": '", kNone = "' is none of ";
  if (const size_t at = problem.find(kQuote), end = problem.find(kNone);
      at != problem.npos && end != problem.npos && end > at) {
    const std::string value = problem.substr(at + kQuote.size(), end - at - kQuote.size());
    const std::string here =
        place_of_others(program, line, problem.substr(0, at) + " " + value, false);
    if (!here.empty()) return problem.substr(0, end + 1) + " is none of its values" + here;
  }
  // "--port: Value :9178 not in range 1 to 65535"
  constexpr std::string_view kValue = ": Value ", kRange = " not in range ";
  if (const size_t at = problem.find(kValue), end = problem.find(kRange);
      at != problem.npos && end != problem.npos && end > at) {
    const std::string name = problem.substr(0, at);
    const std::string value = problem.substr(at + kValue.size(), end - at - kValue.size());
    const std::string range = problem.substr(end + kRange.size());
    constexpr const char* kDigits = "0123456789";
    const size_t digits = value.find_first_of(kDigits);
    const std::string only = digits == value.npos ? "" : value.substr(digits);
    const bool in_words = digits != 0 && value[0] != '-';
    const bool number = !only.empty() && only.find_first_not_of(kDigits) == only.npos;
    if (in_words)
      return name + ": '" + value + "' is no number: it takes " + range +
             (number ? ", as in " + name + " " + only : "");
  }
  // "Could not convert: --simulate = foo"
  constexpr std::string_view kConvert = "Could not convert: ", kIs = " = ";
  const size_t is = problem.find(kIs);
  if (problem.starts_with(kConvert) && is != problem.npos) {
    const std::string name = problem.substr(kConvert.size(), is - kConvert.size());
    const std::string value = problem.substr(is + kIs.size());
    const CLI::Option* const option = line.get_option_no_throw(name);
    if (option == nullptr) return problem;
    if (option->get_items_expected_max() == 0)
      return name + " takes no value: leave '=" + value + "' out";
    return name + ": '" + value + "' is not understood: it takes a whole number";
  }
  // "PID: At Most 1 required but received 2"
  constexpr std::string_view kMost = ": At Most 1 required but received ";
  if (const size_t at = problem.find(kMost); at != problem.npos)
    return line.get_name() + " takes one " + problem.substr(0, at) + " at a time, and " +
           problem.substr(at + kMost.size()) + " are given";
  return problem;
}

// What is wrong, in words that say what to do; `otherwise`, where it is no unknown word.
std::string words_of(const Program& program, const CommandLine& line, std::string otherwise) {
  const CommandLine& root = program.line;
  std::vector<std::string> commands, options;
  for (const CommandLine* command : below(line)) commands.push_back(command->get_name());
  for (const CLI::Option* option : line.get_options())
    for (const std::string& name : names_of(*option)) options.push_back(name);
  const std::vector<std::string> left = root.remaining(true);
  const auto unknown = std::ranges::find_if(
      left, [&](const std::string& word) { return !commands.empty() || word.starts_with("-"); });
  if (unknown == left.end()) {
    // "--report: 1 required FILE missing"
    constexpr std::string_view kLacks = ": 1 required ", kEnd = " missing";
    if (const size_t at = otherwise.find(kLacks);
        at != otherwise.npos && otherwise.ends_with(kEnd)) {
      std::string kind =
          otherwise.substr(at + kLacks.size(), otherwise.size() - kEnd.size() - at - kLacks.size());
      constexpr std::string_view kText = "TEXT:";  // CLI11's own kind, before ours
      if (kind.starts_with(kText)) kind.erase(0, kText.size());
      return otherwise.substr(0, at) + " takes a " + kind + ", which is missing";
    }
    if (!commands.empty()) return "which command? There are " + joined(commands);
    if (!left.empty())
      return "'" + left.front() + "' is one word too many: " + takes(line) +
             (line.words_instead.empty()
                  ? ""
                  : "; " + CLI::detail::find_and_replace(line.words_instead, "*", left.front()));
    if (otherwise.ends_with(" is required")) return otherwise + ": " + takes(line) + as_in(line);
    return words_of_value(program, line, otherwise);
  }
  const std::string word = unknown->substr(0, unknown->find('='));
  if (word.starts_with("-"))
    return "unknown option " + word + place_of(program, line, word, options);
  const std::string near = did_you_mean(word, commands);
  return "unknown command '" + word + "'" +
         (near.empty() ? "; there are " + joined(commands) : near);
}

size_t help_width() {
  constexpr size_t kWidth = 80, kLeast = 50;
  const char* columns = std::getenv("COLUMNS");
  const size_t width = columns != nullptr ? std::strtoul(columns, nullptr, 10) : 0;
  return width == 0 ? kWidth : std::clamp(width, kLeast, kWidth);
}

// The help of the command that was given.
bool helped(const Program& program, bool all) {
  std::string name;
  innermost(program.line, name);
  for (const Command& command : commands_of(program))
    if (command.name == (name == program.usual ? "" : name))
      write_help(std::cout, program, command, all, help_width());
  return static_cast<bool>(std::cout.flush());
}

}  // namespace

// An option of one letter is like every other one, and two slips seldom begin with the first.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 60, kShort = 4;
  const size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  const size_t letters = word.size() - dashes;
  if (word.size() > kLongest || letters < 2) return "";
  std::pair<size_t, std::string> best{letters, ""};
  for (const std::string& name : known) {
    const size_t distance = edit_distance(word, name);
    const bool begins_alike = name.size() > dashes && name[dashes] == word[dashes];
    if ((name.size() > 2 || dashes == 0) && (distance < 2 || begins_alike))
      best = std::min(best, std::pair{distance, name});
  }
  return best.second.empty() ||
                 best.first > (letters <= kShort ? 1 : std::max<size_t>(2, letters / 3))
             ? ""
             : ": did you mean " + best.second + "?";
}

CommandLine::CommandLine(const std::string& name, std::string purpose_, const std::string& text)
    : CLI::App(text, name), purpose(std::move(purpose_)) {
  set_help_flag("-h,--help", "Show this help");
}

CommandLine& CommandLine::add_command(const std::string& name, std::string purpose_,
                                      const std::string& text) {
  auto command = std::make_shared<CommandLine>(name, std::move(purpose_), text);
  add_subcommand(command);
  return *command;
}

CLI::Validator one_of(std::vector<std::string> words) {
  const std::string choices = "{" + joined(words, ",") + "}";
  return CLI::Validator(
      [words = std::move(words)](std::string& given) {
        if (std::ranges::find(words, given) != words.end()) return std::string();
        if (std::ranges::find(words, given.substr(0, given.find(','))) != words.end())
          return "'" + given + "' is several of " + joined(words) + ": it takes one at a time";
        return "'" + given + "' is none of " + joined(words) + did_you_mean(given, words);
      },
      choices);
}

CLI::Validator such_as(std::function<std::vector<std::string>()> words) {
  struct Usual : CLI::Validator {
    explicit Usual(std::function<std::vector<std::string>()> words) {
      func_ = [](std::string&) { return std::string(); };
      desc_function_ = [words = std::move(words)] { return "{" + joined(words(), ",") + "}"; };
    }
  };
  return Usual(std::move(words));
}

std::vector<std::string> help_last(std::vector<std::string> arguments) {
  std::error_code ignored;
  if (arguments.size() == 2 && arguments[1] == "help" && !std::filesystem::exists("help", ignored))
    arguments[1] = "--help";
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

namespace {

// What an editor or a page has made of "--".
std::string with_short_dashes(const std::string& word) {
  for (const std::string_view dash : {"\xE2\x80\x94", "\xE2\x80\x93", "\xE2\x88\x92"})
    if (word.starts_with(dash)) return "--" + word.substr(dash.size());
  return "";
}

// Mistakes that are seen in words before they are parsed; empty: there is none.
std::string slip_in(const Program& program, const std::vector<std::string>& arguments) {
  const CommandLine* line = &program.line;
  for (const CommandLine* command : below(program.line))
    if (!arguments.empty() && command->get_name() == arguments.front()) line = command;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (const std::string meant = with_short_dashes(word); !meant.empty())
      return "'" + word + "' begins with a long dash, and options with two short ones: " + meant;
    // What is behind a program's name is the program's.
    const bool value = i > 0 && arguments[i - 1].starts_with("-");
    if (line->get_prefix_command() && i > 0 && !word.starts_with("-") && !value) break;
    const CLI::Option* const option = value ? line->get_option_no_throw(arguments[i - 1]) : nullptr;
    if (option != nullptr && option->get_delimiter() == ',' && word.ends_with(',') &&
        i + 1 < arguments.size())
      return arguments[i - 1] + " " + word +
             ": leave out the blank behind the comma: " + arguments[i - 1] + " " + word +
             arguments[i + 1];
  }
  return "";
}

}  // namespace

Parsed parse(const Program& program, std::vector<std::string> arguments, int usage_code) {
  std::string name, problem;
  if (const std::string slip = slip_in(program, arguments); !slip.empty())
    return {usage_code, slip};
  std::ranges::reverse(arguments);  // CLI11 takes them so
  try {
    program.line.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    innermost(program.line, name);
    const bool of_nothing = name.empty() && !program.line.remaining().empty();
    if (!of_nothing) return {helped(program, false) ? 0 : usage_code, ""};
    name.clear();
    problem = "help of nothing";
  } catch (const CLI::CallForAllHelp&) {
    return {helped(program, true) ? 0 : usage_code, ""};
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << '\n';
    return {std::cout.flush() ? 0 : usage_code, ""};
  } catch (const CLI::ParseError& error) {
    problem = error.what();
  }
  const CommandLine& line = innermost(program.line, name);
  const std::vector<std::string> left = line.remaining();  // of a command that takes a program
  if (problem.empty() && (left.empty() || !left.front().starts_with("-")))
    return {std::nullopt, "", &line};
  const std::string named = name.empty() || name == program.usual ? "" : " " + name;
  return {usage_code, words_of(program, line, problem) + " (see " + program.line.get_name() +
                          named + " --help)"};
}

std::optional<bool> answer(std::ostream& out, const Program& program,
                           const std::vector<std::string>& arguments) {
  static const std::map<std::string, const char*> kShells = {
      {"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
  if (!arguments.empty() && arguments[0] == "--complete") {
    complete(out, program, {arguments.begin() + 1, arguments.end()});
  } else if (arguments.size() != 2 || arguments[0] != "--generate") {
    return std::nullopt;
  } else if (arguments[1] == "man") {
    write_man(out, program);
  } else if (const auto shell = kShells.find(arguments[1]); shell != kShells.end()) {
    out << CLI::detail::find_and_replace(shell->second, "PROGRAM", program.line.get_name());
  } else {
    return false;
  }
  return static_cast<bool>(out.flush());
}

}  // namespace flopinj::manual
