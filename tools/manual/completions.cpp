#include <algorithm>

#include "manual/manual.h"

namespace flopinj::manual {
namespace {

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : separator) + word;
  return out;
}

// A word of any of the three shells, in single quotes.
std::string quoted(const std::string& text, const char* quote) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += quote;
    else
      out += c;
  }
  return out + "'";
}
std::string posix(const std::string& text) { return quoted(text, "'\\''"); }

// One line, as long as a menu of a shell has room for.
std::string brief(std::string text) {
  constexpr size_t kMost = 100;
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() > kMost) text = text.substr(0, text.rfind(' ', kMost)) + " ...";
  return text;
}

// Values to choose from, of which some have spaces.
std::string choices(const Option& option, const char* before, const char* after) {
  std::vector<std::string> words;
  for (const std::string& choice : option.choices)
    words.push_back(choice.find(' ') == choice.npos ? choice : before + choice + after);
  return joined(words, " ");
}

std::string first_word(const std::string& name) { return name.substr(0, name.find(' ')); }

// Words that may follow `before`: the next words of commands' names.
std::vector<std::string> words_after(const Program& program, const std::string& before) {
  std::vector<std::string> words;
  for (const Command& command : program.commands) {
    const std::string prefix = before.empty() ? "" : before + " ";
    if (command.name.size() <= prefix.size() || !command.name.starts_with(prefix)) continue;
    const std::string word = first_word(command.name.substr(prefix.size()));
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

// Commands, and the first words of those of several that are none themselves.
std::vector<std::string> places(const Program& program) {
  std::vector<std::string> all = {""};
  for (const Command& command : program.commands)
    for (size_t end = command.name.find(' ');; end = command.name.find(' ', end + 1)) {
      const std::string place = command.name.substr(0, end);
      if (std::find(all.begin(), all.end(), place) == all.end()) all.push_back(place);
      if (end == std::string::npos) break;
    }
  return all;
}

const Command* find(const Program& program, const std::string& name) {
  for (const Command& command : program.commands)
    if (command.name == name) return &command;
  return nullptr;
}

// What a command's arguments without a name may be, where there are words to choose from.
std::string argument_words(const Command* command) {
  std::string words;
  if (command == nullptr) return words;
  for (const Option& o : command->options)
    if (o.names.empty() && !o.choices.empty())
      words += (words.empty() ? "" : " ") + choices(o, "\"", "\"");
  return words;
}

// Commands and arguments that may come behind `place`.
std::string next_words(const Program& program, const std::string& place) {
  std::vector<std::string> words = words_after(program, place);
  if (const std::string more = argument_words(find(program, place)); !more.empty())
    words.push_back(more);
  return joined(words, " ");
}

// Shell patterns for an option's names after a command: "'compare -o'|'compare --output'".
std::string patterns(const Command& command, const Option& option) {
  std::string out;
  for (const auto& name : option.names)
    out += (out.empty() ? "" : "|") + posix(command.name + " " + name);
  return out;
}

// Which word makes which command, while commands may still come: cases of "$open$command $word".
void write_command_cases(std::ostream& out, const Program& program, const char* indent) {
  for (const auto& place : places(program))
    for (const auto& word : words_after(program, place))
      out << indent << posix("1" + place + " " + word)
          << ") command=" << posix(place.empty() ? word : place + " " + word) << " ;;\n";
}

}  // namespace

void write_bash(std::ostream& out, const Program& program) {
  const std::string function = "_" + program.name;
  out << "# Completion of " << program.name << " for bash, made from its command line.\n"
      << function << "() {\n"
      << "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= "
         "open=1 i\n"
      << "  COMPREPLY=()\n"
      << "  # --option=value comes in three words\n"
      << "  if [[ $current == = ]]; then current=\n"
      << "  elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      << "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      << "    [[ ${COMP_WORDS[i]} != -- ]] || return  # what follows is another program's\n"
      << "    case \"$open$command ${COMP_WORDS[i]}\" in\n";
  write_command_cases(out, program, "      ");
  out << "      *) open= ;;  # commands stand first\n    esac\n  done\n  case \"$command $before\" "
         "in\n";
  for (const Command& command : program.commands)
    for (const Option& o : command.options) {
      if (o.names.empty() || o.value.empty()) continue;
      out << "    " << patterns(command, o) << ") ";
      if (!o.choices.empty())
        out << "mapfile -t COMPREPLY < <(compgen -W " << posix(choices(o, "\"", "\""))
            << " -- \"$current\"); ";
      out << "return ;;\n";
    }
  out << "  esac\n  case \"$command\" in\n";
  for (const auto& place : places(program)) {
    std::vector<std::string> options;
    if (const Command* command = find(program, place))
      for (const Option& o : command->options)
        options.insert(options.end(), o.names.begin(), o.names.end());
    out << "    " << posix(place)
        << ") if [[ $current == -* ]]; then i=" << posix(joined(options, " "))
        << "; else i=" << posix(next_words(program, place)) << "; fi ;;\n";
  }
  out << "  esac\n  mapfile -t COMPREPLY < <(compgen -W \"$i\" -- \"$current\"\n"
      << "    [[ $current == -* ]] || compgen -f -- \"$current\")\n}\n"
      << "complete -o filenames -o bashdefault -o default -F " << function << ' ' << program.name
      << '\n';
}

namespace {

// One option for _arguments: "(-o --output)"{-o,--output}"[text]:VALUE:_files".
void zsh_option(std::ostream& out, const Option& o) {
  const auto plain = [](const std::string& text) {  // what means something in a specification
    std::string escaped;
    for (const char c : text) {
      if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
      escaped += c;
    }
    return escaped;
  };
  const std::string action = o.choices.empty() ? "_files" : "(" + choices(o, "\"", "\"") + ")";
  if (o.names.empty()) {
    out << " \\\n      "
        << posix(std::string(o.many ? "*" : "") +
                 (o.required ? ":"
                  : o.many   ? ":"
                             : "::") +
                 plain(o.value) + ":" + action);
    return;
  }
  std::string tail = "[" + plain(brief(o.text)) + "]";
  if (!o.value.empty()) tail += ":" + plain(o.value) + ":" + action;
  for (const auto& name : o.names)
    out << " \\\n      " << posix((o.many ? "*" : "(" + joined(o.names, " ") + ")") + name + tail);
}

}  // namespace

void write_zsh(std::ostream& out, const Program& program) {
  out << "#compdef " << program.name << "\n# Made from the definitions of the command line.\n"
      << "local command= open=1 word\n"
      << "for word in ${words[2,CURRENT-1]}; do\n"
      << "  [[ $word != -- ]] || { _normal; return }  # what follows is another program's\n"
      << "  case \"$open$command $word\" in\n";
  write_command_cases(out, program, "    ");
  out << "    *) open= ;;\n  esac\ndone\ncase $command in\n";
  for (const auto& place : places(program)) {
    const auto words = words_after(program, place);
    out << "  " << posix(place) << ")\n";
    if (!words.empty()) {
      out << "    local -a next=(" << joined(words, " ") << ")\n"
          << "    [[ $PREFIX == -* ]] || _describe command next\n";
    }
    if (const Command* command = find(program, place)) {
      if (!place.empty())
        out << "    words=($words[1] ${words[" << std::count(place.begin(), place.end(), ' ') + 3
            << ",-1]}); (( CURRENT -= " << std::count(place.begin(), place.end(), ' ') + 1
            << " ))\n";
      out << "    _arguments -s";
      for (const Option& o : command->options) zsh_option(out, o);
      out << '\n';
    }
    out << "    ;;\n";
  }
  out << "esac\n";
}

void write_fish(std::ostream& out, const Program& program) {
  const auto fish = [](const std::string& text) {  // a backslash escapes in fish's quotes
    std::string escaped;
    for (const char c : text) escaped += c == '\\' ? std::string("\\\\") : std::string(1, c);
    return quoted(escaped, "\\'");
  };
  const std::string all = joined(words_after(program, ""), " ");
  const auto condition = [&](const std::string& place) {
    if (place.empty()) return "not __fish_seen_subcommand_from " + all;
    std::string out_;
    std::string rest = place;
    while (!rest.empty()) {
      const std::string word = first_word(rest);
      out_ += (out_.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
      rest = word.size() < rest.size() ? rest.substr(word.size() + 1) : "";
    }
    if (const auto words = words_after(program, place); !words.empty())
      out_ += "; and not __fish_seen_subcommand_from " + joined(words, " ");
    return out_;
  };
  out << "# Completion of " << program.name << " for fish, made from its command line.\n";
  for (const auto& place : places(program)) {
    const std::string start = "complete -c " + program.name + " -n " + fish(condition(place));
    if (const std::string words = next_words(program, place); !words.empty())
      out << start << " -a " << fish(words) << '\n';
    const Command* command = find(program, place);
    if (command == nullptr) continue;
    for (const Option& o : command->options) {
      if (o.names.empty()) continue;
      out << start;
      for (const auto& name : o.names)
        out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
      if (!o.choices.empty())
        out << " -x -a " << fish(choices(o, "\"", "\""));
      else if (!o.value.empty())
        out << " -r";
      out << " -d " << fish(brief(o.text)) << '\n';
    }
  }
}

}  // namespace flopinj::manual
