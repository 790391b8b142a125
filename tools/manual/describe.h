// A command line's definitions as CLI11 has them.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "manual/manual.h"

namespace flopinj::manual {

// What an option takes, from CLI11's words for it: "TEXT:{a,b}", "UINT:INT in [1 - 9]",
// "TEXT:LIST", or with names for values "ENUM:value in {a->0,b->1} OR {0,1}".
inline void describe_value(const std::string& type, Option& option) {
  const size_t colon = type.find(':');
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

inline Option describe(const CLI::Option& from) {
  Option option;
  for (const auto& name : from.get_snames()) option.names.push_back("-" + name);
  for (const auto& name : from.get_lnames()) option.names.push_back("--" + name);
  option.text = from.get_description();
  option.preset = from.get_default_str();
  option.required = from.get_required();
  option.many = from.get_items_expected_max() > 1;
  if (from.get_positional())
    option.value = from.get_single_name();
  else if (from.get_items_expected_max() > 0)
    describe_value(from.get_type_name(), option);
  return option;
}

inline Command describe(const CLI::App& app, std::string name) {
  Command command{std::move(name), app.get_description(), app.get_footer(), {}};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) command.options.push_back(describe(*option));
  return command;
}

}  // namespace flopinj::manual
