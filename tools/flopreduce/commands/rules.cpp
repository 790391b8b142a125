// flopreduce rules: how phases are decided, as a rule file.
#include <memory>

#include "commands/arguments/arguments.h"
#include "support/program_name.h"

namespace flopinj::reduce {
namespace {

Action define_rules(manual::CommandLine& app) {
  struct Arguments {
    PhaseRules rules;
    RuleArguments arguments;
    OutputArguments output;
  };
  const auto a = std::make_shared<Arguments>();
  a->arguments.add_to(app, a->rules);
  a->output.add_file_to(app);
  app.words_instead =
      "-o * writes them there, and " + typed("report --rules *") + " TRACE reads them";
  app.examples = {{typed("rules > my.rules"), "a rule file to begin with"}};
  return [a] {
    a->output.finish(a->arguments.files);
    const PhaseRules& rules = a->rules;
    return write_output(a->output, [&](std::ostream& out) {
      for (uint32_t i = 0; i < rules.user_rules(); ++i)
        out << PhaseRules::line_of(rules.rules()[i]) << "\n";
      if (rules.user_rules() > 0) out << "\n";
      out << PhaseRules::built_in();
    });
  };
}

}  // namespace

const ProgramCommand kRules(
    {reducer_command("rules"),
     "Prints the rules that tell phases apart, in the order in which they are tried: those of "
     "--phase and --rules, then the built-in ones. The output is a rule file.",
     define_rules});

}  // namespace flopinj::reduce
