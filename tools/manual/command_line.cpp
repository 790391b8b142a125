#include "manual/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

#include "edit_distance.h"

namespace flopinj::manual {
namespace {

// What an option takes, from CLI11's words for it: "TEXT:{a,b}", "UINT:INT in [1 - 9]",
// "TEXT:LIST", or with names for values "ENUM:value in {a->0,b->1} OR {0,1}".
void describe_value(const std::string& type, Option& option) {
  // CLI11's own kinds and rules have a colon between; so may a name that we gave.
  const bool own_kind = type.starts_with("TEXT:") || type.starts_with("UINT:") ||
                        type.starts_with("INT:") || type.starts_with("FLOAT:");
  const size_t colon = own_kind ? type.find(':') : type.find(":{");
  const std::string kind = type.substr(0, colon);
  const std::string rule = colon == std::string::npos ? "" : type.substr(colon + 1);
  const bool number = kind == "INT" || kind == "UINT" || kind == "FLOAT";
  option.value = number ? "N" : kind == "TEXT" || kind == "ENUM" || kind.empty() ? "VALUE" : kind;
  const size_t open = rule.find('{');
  if (open == std::string::npos) {
    if (!rule.empty() && rule.find(' ') == std::string::npos) option.value = rule;
    return;
  }
  std::string choice;
  for (size_t i = open + 1; i < rule.size(); ++i) {
    if (rule[i] == ',' || rule[i] == '}') {
      option.choices.push_back(choice.substr(0, choice.find("->")));
      choice.clear();
      if (rule[i] == '}') return;
    } else {
      choice += rule[i];
    }
  }
}

Option describe(const CLI::Option& from) {
  Option option;
  for (const auto& name : from.get_snames()) option.names.push_back("-" + name);
  for (const auto& name : from.get_lnames()) option.names.push_back("--" + name);
  option.text = from.get_description();
  option.preset = from.get_default_str();
  option.required = from.get_required();
  option.many = from.get_items_expected_max() > 1;
  if (from.get_items_expected_max() > 0) describe_value(from.get_type_name(), option);
  if (from.get_positional()) option.value = from.get_single_name();
  return option;
}

Command describe_one(const CommandLine& line, std::string name) {
  Command command;
  command.name = std::move(name);
  command.purpose = line.purpose;
  command.text = line.get_description();
  command.operands = line.operands;
  command.notes = line.notes;
  command.lists = line.lists;
  command.examples = line.examples;
  for (const CLI::Option* option : line.get_options())
    if (!option->get_group().empty()) command.options.push_back(describe(*option));
  return command;
}

void describe_tree(const CommandLine& line, const std::string& name, const std::string& usual,
                   std::vector<Command>& all) {
  for (const CLI::App* child : line.get_subcommands([](const CLI::App*) { return true; })) {
    const auto& command = dynamic_cast<const CommandLine&>(*child);
    const std::string full = (name.empty() ? "" : name + " ") + command.get_name();
    all.push_back(describe_one(command, full == usual ? "" : full));
    describe_tree(command, full, usual, all);
  }
}

// The command that was given last, and its name in full.
const CommandLine& innermost(const CommandLine& root, std::string& name) {
  const CommandLine* line = &root;
  for (auto below = line->get_subcommands(); !below.empty(); below = line->get_subcommands()) {
    line = dynamic_cast<const CommandLine*>(below.back());
    name += (name.empty() ? "" : " ") + line->get_name();
  }
  return *line;
}

std::vector<std::string> command_names(const CommandLine& line) {
  std::vector<std::string> names;
  for (const CLI::App* child : line.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(child->get_name());
  return names;
}

std::vector<std::string> option_names(const CommandLine& line) {
  std::vector<std::string> names;
  for (const CLI::Option* option : line.get_options())
    for (const std::string& name : describe(*option).names) names.push_back(name);
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// What is wrong, in words that say what to do.
std::string words_of(const CLI::ParseError& error, const CommandLine& root) {
  std::string name;
  const CommandLine& line = innermost(root, name);
  const std::vector<std::string> left = root.remaining(true);
  const bool needs_command = !command_names(line).empty();
  const auto unknown = std::find_if(left.begin(), left.end(), [&](const std::string& word) {
    return needs_command || word.starts_with("-");
  });
  if (unknown == left.end()) {
    if (needs_command) return "which command? There are " + joined(command_names(line));
    return error.what();
  }
  const std::string word = unknown->substr(0, unknown->find('='));
  if (word.starts_with("-")) {
    const std::string near = did_you_mean(word, option_names(line));
    return "unknown option " + word + near;
  }
  const std::string near = did_you_mean(word, command_names(line));
  return "unknown command '" + word + "'" +
         (near.empty() ? "; there are " + joined(command_names(line)) : near);
}

size_t help_width() {
  constexpr size_t kWidth = 80, kLeast = 50;
  const char* columns = std::getenv("COLUMNS");
  const size_t width = columns != nullptr ? std::strtoul(columns, nullptr, 10) : 0;
  return width == 0 ? kWidth : std::clamp(width, kLeast, kWidth);
}

}  // namespace

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

std::vector<Command> describe(const CommandLine& root, const std::string& usual) {
  std::vector<Command> all;
  if (usual.empty()) all.push_back(describe_one(root, ""));
  describe_tree(root, "", usual, all);
  return all;
}

CLI::Validator one_of(std::vector<std::string> words) {
  std::string choices;
  for (const std::string& word : words) choices += (choices.empty() ? "" : ",") + word;
  return CLI::Validator(
      [words](std::string& given) {
        if (std::find(words.begin(), words.end(), given) != words.end()) return std::string();
        return "'" + given + "' is none of " + joined(words) + did_you_mean(given, words);
      },
      "{" + choices + "}");
}

CLI::Validator such_as(const std::vector<std::string>& words) {
  std::string choices;
  for (const std::string& word : words) choices += (choices.empty() ? "" : ",") + word;
  return CLI::Validator([](std::string&) { return std::string(); }, "{" + choices + "}");
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 60;
  if (word.size() > kLongest) return "";
  std::pair<size_t, std::string> best{word.size(), ""};
  for (const std::string& name : known)
    best = std::min(best, std::pair{edit_distance(word, name), name});
  return best.second.empty() || best.first > std::max<size_t>(2, word.size() / 3)
             ? ""
             : ": did you mean " + best.second + "?";
}

Parsed parse(CommandLine& root, const Program& program, const std::string& usual,
             std::vector<std::string> arguments, int usage_code) {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them so
  try {
    root.parse(std::move(arguments));
    std::string name;
    return {std::nullopt, "", &innermost(root, name)};
  } catch (const CLI::CallForHelp&) {
    std::string name;
    innermost(root, name);
    if (name == usual) name.clear();
    for (const Command& command : program.commands)
      if (command.name == name) write_help(std::cout, program, command, help_width());
    return {std::cout.flush() ? 0 : usage_code, ""};
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << '\n';
    return {std::cout.flush() ? 0 : usage_code, ""};
  } catch (const CLI::ParseError& error) {
    std::string name;
    innermost(root, name);
    if (name == usual) name.clear();
    return {usage_code, words_of(error, root) + " (see " + program.name +
                            (name.empty() ? "" : " " + name) + " --help)"};
  }
}

}  // namespace flopinj::manual
