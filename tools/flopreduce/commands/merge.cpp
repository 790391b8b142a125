// flopreduce merge: traces and summaries joined into one summary.
#include "commands/arguments/command.h"
#include "commands/run.h"

namespace flopinj::reduce {
namespace {

int run_merge(int argc, char** argv) {
  CLI::App app{
      "Joins traces and summaries into one summary: a small file that every command reads like "
      "the traces themselves. Inputs may come in any order and grouping, and more than once.",
      "flopreduce merge"};
  app.footer(
      "A summary has every launch counted and timed, but not the moments at which they ran: there "
      "is no timeline in its report. Parts of one trace have to be given together.\n"
      "What was damaged in a trace is in its summary, and told when that is read; the exit code is "
      "3 "
      "only where an input could not be read at all.\n"
      "Example: flopreduce merge -o rank7.sum rank7.pb        on each node\n"
      "         flopreduce merge -o job.sum rank*.sum         anywhere, in any grouping\n"
      "         flopreduce job.sum");
  InputArguments input;
  OutputArguments output;
  app.add_option("INPUT", input.traces, "Traces and summaries; '-' reads standard input")
      ->required();
  output.add_file_to(app);
  if (const int code = parse(app, argc, argv); code >= 0) return code;
  if (const int code = output.finish(input.traces); code >= 0) return code;
  return write_summary(input, output);
}

}  // namespace

const Command kMerge = {"merge", "traces and summaries into one summary", run_merge};

}  // namespace flopinj::reduce
