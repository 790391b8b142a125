// flopreduce rules: how phases are told apart, as a rule file.
#include <iostream>

#include "commands/arguments/arguments.h"
#include "commands/arguments/command.h"
#include "commands/arguments/output_file.h"

namespace flopinj::reduce {
namespace {

int run_rules(int argc, char** argv) {
  CLI::App app{
      "Prints the rules that tell phases apart, in the order in which they are tried: those of "
      "--phase and --rules, then the built-in ones. The output is a rule file.",
      "flopreduce rules"};
  RuleArguments arguments;
  OutputArguments output;
  arguments.add_to(app);
  output.add_file_to(app);
  if (const int code = parse(app, argc, argv); code >= 0) return code;
  if (const int code = output.finish(arguments.files); code >= 0) return code;
  PhaseRules rules;
  if (const int code = arguments.finish(rules); code >= 0) return code;
  return write_output(output, [&](std::ostream& out) {
    for (uint32_t i = 0; i < rules.user_rules(); ++i)
      out << PhaseRules::line_of(rules.rules()[i]) << "\n";
    if (rules.user_rules() > 0) out << "\n";
    out << PhaseRules::built_in();
  });
}

}  // namespace

const Command kRules = {"rules", "the rules that tell phases apart, as a rule file", run_rules};

}  // namespace flopinj::reduce
