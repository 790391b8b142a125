// flopreduce TRACE...: the report of all traces together.
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands/arguments/command.h"
#include "commands/arguments/gate_arguments.h"
#include "commands/arguments/utilization_arguments.h"
#include "commands/forms.h"
#include "commands/run.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string list_of_commands() {
  std::string text = "Commands (flopreduce COMMAND --help):\n";
  for (const Command* command : commands())
    text += "  " + std::string(command->name) +
            std::string(12 - std::string_view(command->name).size(), ' ') + command->purpose + "\n";
  return text;
}

int run_report(int argc, char** argv) {
  CLI::App app{"Turns traces of libflopinj.so into a FLOP report.", "flopreduce"};
  app.footer(list_of_commands() + "\n" + describe_report_forms() +
             "\nExit codes: 0 fine, 1 a gate failed, 2 usage, 3 a trace was unreadable or partial "
             "(the rest is "
             "reported), 4 permission.\n"
             "Example: flopreduce trace.pb\n"
             "         flopreduce --format json -o report.json rank*.pb");
  InputArguments input;
  OutputArguments output;
  UtilizationArguments utilization;
  GateArguments gates;
  input.add_to(app);
  output.add_to(app, report_forms());
  app.add_option("--sections", output.sections,
                 "LIST: only sections with these words in their titles, such as roofline,kernels "
                 "(text, markdown)")
      ->delimiter(',')
      ->allow_extra_args(false);
  utilization.add_to(app);
  app.add_option("--weight", output.weight,
                 "What --format folded adds up: flop (the default), time, launches")
      ->check(CLI::IsMember({"flop", "time", "launches"}));
  gates.add_to(app);
  bool partial = false;
  app.add_flag("--partial", partial,
               "Write a summary instead of a report, to be joined by flopreduce merge")
      ->excludes("--format", "--fail-if");
  app.set_version_flag("--version", std::string("flopreduce ") + FLOPINJ_VERSION);
  if (const int code = parse(app, argc, argv); code >= 0) return code;
  if (const int code = input.finish(); code >= 0) return code;
  if (const int code = output.finish(input.files()); code >= 0) return code;
  if (partial) return write_summary(input, output);
  if (const int code = check_report_form(output); code >= 0) return code;
  if (const int code = utilization.finish(input.reduce.utilization); code >= 0) return code;
  if (const int code = gates.finish(); code >= 0) return code;

  WrittenLaunches written;
  if (shows_launches(output))
    input.reduce.launches = [&, fma = input.reduce.fma](Launches& launches) {
      written = write_launches(launches, output, fma);
    };
  const Reduced reduced = reduce_traces(input);
  if (!reduced.report) return reduced.exit_code;
  if (const int code = UtilizationArguments::check(*reduced.report); code >= 0) return code;
  if (!shows_launches(output)) written.exit_code = write_report(*reduced.report, output);
  if (written.exit_code != kExitFine) return written.exit_code;
  if (const uint64_t all = reduced.report->total.launches;
      shows_launches(output) && all > written.count)
    complain(to_grouped(all - written.count) +
             " launches are not in it: when they ran is not known");
  if (gates.any())
    if (const int failed = gates.check(gate_json(*reduced.report)); failed != kExitFine)
      return failed;
  if (reduced.exit_code != kExitFine) return reduced.exit_code;
  if (output.format == "text" && ::isatty(STDERR_FILENO) != 0)
    std::fprintf(stderr, "\nNext: flopreduce --format json -o report.json %s\n",
                 printable(input.traces[0]).c_str());
  return kExitFine;
}

}  // namespace

const Command kReport = {"report", "what the traces hold; the default", run_report};

}  // namespace flopinj::reduce
