// Completion: the program itself says what may come next, so that the shells' own scripts only ask
// it: `PROGRAM --complete WORD...`.
#include <algorithm>

#include "manual/manual.h"

namespace flopinj::manual {
namespace {

const Command* find(const Program& program, const std::string& name) {
  const auto found = std::ranges::find(program.commands, name, &Command::name);
  return found == program.commands.end() ? nullptr : &*found;
}

// One line, as long as a menu of a shell has room for.
std::string brief(std::string text) {
  constexpr size_t kMost = 100;
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() > kMost) text = text.substr(0, text.rfind(' ', kMost)) + " ...";
  return text;
}

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

}  // namespace

void write_completion(std::ostream& out, const Program& program, const std::string& shell) {
  std::string script = shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
  constexpr std::string_view kName = "PROGRAM";
  for (size_t at = 0; (at = script.find(kName, at)) != script.npos;)
    script.replace(at, kName.size(), program.name);
  out << script;
}

void complete(std::ostream& out, const Program& program, std::vector<std::string> words) {
  // bash gives --option=value as three words.
  if (!words.empty() && words.back() == "=") words.back().clear();
  std::erase(words, "=");
  std::string current = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  const bool others = std::ranges::find(words, "--") != words.end();  // words of another program
  const Command* command = find(program, "");
  std::string name;
  for (const std::string& word : words) {  // commands stand first
    name += (name.empty() ? "" : " ") + word;
    if (find(program, name) == nullptr) break;
    command = find(program, name);
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
  const auto takes_value = [&](const Option& o) {
    return !o.value.empty() && std::ranges::find(o.names, before) != o.names.end();
  };
  const std::vector<Option> none;
  const std::vector<Option>& options = command == nullptr || others ? none : command->options;
  const auto valued = std::ranges::find_if(options, takes_value);
  if (valued != options.end()) {
    add_values(*valued);
    files = known.empty();
  } else if (current.starts_with("-")) {
    files = false;
    for (const Option& o : options)
      for (const std::string& option : o.names) known.push_back({option, brief(o.text)});
  } else if (command != nullptr && !others) {
    const std::string prefix = command->name.empty() ? "" : command->name + " ";
    for (const Command& next : program.commands)
      if (next.name.size() > prefix.size() && next.name.starts_with(prefix) &&
          next.name.find(' ', prefix.size()) == std::string::npos)
        known.push_back({next.name.substr(prefix.size()), next.purpose});
    for (const Option& o : options)
      if (o.names.empty()) add_values(o);
  }
  out << (files ? "files" : "words") << '\n';
  for (const Entry& e : known)
    if (e.term.starts_with(current)) out << e.term << (e.text.empty() ? "" : "\t" + e.text) << '\n';
}

}  // namespace flopinj::manual
