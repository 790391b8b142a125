// flopreduce merge: traces and summaries joined into one summary.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <ostream>
#include <set>
#include <variant>

#include "commands/arguments/arguments.h"
#include "passes/summary/condense.h"
#include "reader/input.h"
#include "sections/parts/cells.h"
#include "shell_word.h"
#include "support/program_name.h"
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

// A row for each recording in the inputs, as CSV.
int write_list(const Merge& merge, const OutputArguments& to) {
  Table list{"recordings",
             {{"file", "file"},
              {"session", "session"},
              {"cluster", "cluster"},
              {"job_id", "job"},
              {"requeues", "requeues", Kind::kCount},
              {"restarts", "restarts", Kind::kCount},
              {"rank", "rank", Kind::kCount},
              {"simulated", "simulated", Kind::kFlag},
              {"begin_ns", "began", Kind::kCount}}};
  const auto number = [](uint64_t value) { return Cell(Figure(u128{value}, Mark::kNone)); };
  for (const Found& f : merge.found()) {
    if (f.session == 0) continue;  // its header is lost
    const int32_t rank = std::get<2>(f.order);
    list.rows.push_back({merge.name(f), hash_text(f.session), f.cluster, f.job_id,
                         number(f.requeues), number(f.restarts),
                         rank < 0 ? Cell::none() : number(static_cast<uint64_t>(rank)),
                         number(f.simulated ? 1 : 0), number(f.begin_ns)});
  }
  return write_output(to, [&](std::ostream& out) { write_csv(out, list); });
}

// What was damaged, as far as a reader wants to know.
void say_some(const std::vector<std::string>& lines) {
  constexpr size_t kMost = 10;
  for (size_t i = 0; i < std::min(kMost, lines.size()); ++i) complain(lines[i]);
  if (lines.size() > kMost)
    complain("and " + to_grouped(lines.size() - kMost) +
             " more with damage: the report of the summary names them");
}

// Writes the summary of the inputs (passes/summary/condense.h), or of these sessions in them. The
// exit code.
int write_summary(const InputArguments& input, const OutputArguments& output,
                  const OutputArguments& list, std::optional<std::set<uint64_t>> only) {
  output.refuse_terminal("a summary");
  Merge merge;
  bool permission = false;
  size_t unopened = 0;
  for (const auto& path : input.traces) {
    auto opened = Input::open(path);
    if (auto* error = std::get_if<InputError>(&opened)) {
      complain(error->message);
      permission = permission || error->permission;
      ++unopened;
    } else {
      merge.add(std::move(std::get<std::unique_ptr<Input>>(opened)));
    }
  }
  if (!list.file.empty())
    if (const int code = write_list(merge, list); code != kExitFine) return code;
  const bool chosen = only.has_value();
  if (only) merge.use_only(std::move(*only));
  merge.choose();
  size_t said = 0;
  const auto say_errors = [&] {
    for (; said < merge.errors().size(); ++said) complain(merge.errors()[said]);
  };
  say_errors();
  const int trouble = permission ? kExitPermission : kExitPartial;
  if (merge.too_many() || merge.recordings() > kMostInSummary) {
    complain("a summary of more than " + to_grouped(kMostInSummary) +
             " processes could not be read again: merge fewer at a time. Nothing was written");
    return kExitUsage;
  }
  if (!merge.any()) {
    if (chosen) complain("no recording in the inputs has one of these sessions");
    return kExitNothing;
  }
  const int code = write_output(output, [&](std::ostream& out) {
    merge.write([&](std::string_view bytes) { out << bytes; });
  });
  say_errors();
  say_some(merge.damaged());
  return code == kExitFine && unopened + said > 0 ? trouble : code;
}

Action define_merge(manual::CommandLine& app) {
  app.notes =
      "A summary has the counts and times of all launches, but not when each one ran: its report "
      "has no timeline. The same traces always give the same bytes. Parts of one trace must be "
      "given together. A damaged trace is named, and its damage is in the summary; the exit code "
      "is 3 only if an input could not be used at all.";
  app.examples = {{typed("merge -o rank7.sum rank7.pb"), "on each node: a small summary"},
                  {typed("merge -o job.sum rank*.sum"), "anywhere, in any grouping"},
                  {typed("merge -o run1.sum --sessions-from run1.txt job.sum"),
                   "one of several runs in a summary"},
                  {"find runs -name '*.pb' | " + typed("merge -o job.sum --files-from -"),
                   "more traces than a command line holds"}};
  struct Arguments {
    InputArguments input;
    OutputArguments output, list;
    std::string sessions;
  };
  const auto a = std::make_shared<Arguments>();
  a->input.add_traces_to(app);
  a->output.add_file_to(app);
  a->output.makes_traces = true;
  app.add_option("--sessions-from", a->sessions,
                 "Only recordings of these sessions: ids from FILE, one a line, as in the table "
                 "processes; '-': from standard input")
      ->type_name("FILE");
  app.add_option("--list", a->list.file,
                 "Write a table of CSV to FILE: the recordings that each input has")
      ->type_name("FILE");
  return [a] {
    std::error_code ignored;
    std::vector<std::string>& traces = a->input.traces;
    // The last word is the output of other programs.
    if (a->output.file.empty() && traces.size() > 1 && is_trace_name(traces.back()) &&
        !std::filesystem::exists(traces.back(), ignored) &&
        std::filesystem::exists(traces.front(), ignored))
      throw Failure(printable(traces.back()) + ": no such file; -o names the file to write: " +
                    typed("merge -o " + shell_quoted(printable(traces.back())) + " " +
                          shell_quoted(printable(traces.front())) +
                          (traces.size() > 2 ? " ..." : "")));
    a->input.finish();
    std::vector<std::string> read = a->input.traces;
    std::optional<std::set<uint64_t>> only;
    if (!a->sessions.empty()) {
      read.push_back(a->sessions);
      only = sessions_in(a->sessions);
    }
    a->output.finish(std::move(read));
    a->list.force = a->output.force;
    if (!a->list.file.empty()) a->list.finish(a->output.inputs);
    return write_summary(a->input, a->output, a->list, std::move(only));
  };
}

}  // namespace

const ProgramCommand kMerge(
    {reducer_command("merge"),
     "Joins traces and summaries into one summary: a small file that every command reads like the "
     "traces themselves. Inputs may come in any order and grouping, and more than once.",
     define_merge});

}  // namespace flopinj::reduce
