// flopreduce merge: traces and summaries joined into one summary.
#include <memory>

#include "commands/arguments/command.h"
#include "commands/run.h"

namespace flopinj::reduce {
namespace {

Action define_merge(manual::CommandLine& app) {
  app.notes =
      "A summary has every launch counted and timed, but not the moments at which they ran: there "
      "is no timeline in its report. Its bytes depend on the traces only. Parts of one trace have "
      "to be given together. A damaged trace is named, and its damage is in the summary; the exit "
      "code is 3 only where an input could not be used at all.";
  app.examples = {{"flopreduce merge -o rank7.sum rank7.pb", "on each node: a small summary"},
                  {"flopreduce merge -o job.sum rank*.sum", "anywhere, in any grouping"},
                  {"find runs -name '*.pb' | flopreduce merge -o job.sum --files-from -",
                   "more traces than a command line holds"}};
  struct Arguments {
    InputArguments input;
    OutputArguments output;
  };
  const auto a = std::make_shared<Arguments>();
  a->input.add_traces_to(app);
  a->output.add_file_to(app);
  return [a] {
    a->input.finish();
    a->output.finish(a->input.traces);
    return write_summary(a->input, a->output);
  };
}

}  // namespace

const Command kMerge = {
    "merge", "traces and summaries into one summary",
    "Joins traces and summaries into one summary: a small file that every command reads like the "
    "traces themselves. Inputs may come in any order and grouping, and more than once.",
    define_merge};

}  // namespace flopinj::reduce
