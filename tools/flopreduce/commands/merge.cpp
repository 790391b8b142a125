// flopreduce merge: traces and summaries joined into one summary.
#include <charconv>
#include <memory>

#include "commands/arguments/command.h"
#include "commands/run.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::set<uint64_t> sessions_in(const std::string& list) {
  std::set<uint64_t> sessions;
  for (std::string& line : lines_of(list, "--sessions-from")) {
    if (line.ends_with('\r')) line.pop_back();  // of the CSV form
    uint64_t id = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), id, 16);
    if (error != std::errc{} || end != line.data() + line.size())
      throw Failure("--sessions-from " + printable(list) + ": '" + printable(cut(line, 40)) +
                    "' is no session: each is 16 hexadecimal digits");
    sessions.insert(id);
  }
  return sessions;
}

Action define_merge(manual::CommandLine& app) {
  app.notes =
      "A summary has every launch counted and timed, but not the moments at which they ran: there "
      "is no timeline in its report. Its bytes depend on the traces only. Parts of one trace have "
      "to be given together. A damaged trace is named, and its damage is in the summary; the exit "
      "code is 3 only where an input could not be used at all.";
  app.examples = {{"flopreduce merge -o rank7.sum rank7.pb", "on each node: a small summary"},
                  {"flopreduce merge -o job.sum rank*.sum", "anywhere, in any grouping"},
                  {"flopreduce merge -o run1.sum --sessions-from run1.txt job.sum",
                   "one of several runs in a summary"},
                  {"find runs -name '*.pb' | flopreduce merge -o job.sum --files-from -",
                   "more traces than a command line holds"}};
  struct Arguments {
    InputArguments input;
    OutputArguments output;
    std::string sessions;
  };
  const auto a = std::make_shared<Arguments>();
  a->input.add_traces_to(app);
  a->output.add_file_to(app);
  app.add_option("--sessions-from", a->sessions,
                 "Only recordings of these sessions: ids from FILE, one a line, as table "
                 "processes has them; '-': from standard input")
      ->type_name("FILE");
  return [a] {
    a->input.finish();
    std::vector<std::string> read = a->input.traces;
    std::optional<std::set<uint64_t>> only;
    if (!a->sessions.empty()) {
      read.push_back(a->sessions);
      only = sessions_in(a->sessions);
    }
    a->output.finish(std::move(read));
    return write_summary(a->input, a->output, std::move(only));
  };
}

}  // namespace

const Command kMerge = {
    "merge", "traces and summaries into one summary",
    "Joins traces and summaries into one summary: a small file that every command reads like the "
    "traces themselves. Inputs may come in any order and grouping, and more than once.",
    define_merge};

}  // namespace flopinj::reduce
