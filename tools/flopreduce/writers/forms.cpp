#include <algorithm>
#include <iterator>

#include "writers/writers.h"

namespace flopinj::reduce {
namespace {

using Reads = Form::Reads;
constexpr Form kForms[] = {
    {"text", "tables for a terminal", Reads::kSections, {.of_answers = true}},
    {"json",
     "everything, for programs; the command schema prints its schema",
     Reads::kTables,
     {.of_answers = true}},
    {"csv",
     "one table (--table KEY); or every table, or these, as files (-o FOLDER/)",
     Reads::kTables,
     {.of_answers = true, .facts = true}},
    {"markdown", "tables for a pull request", Reads::kSections, {.of_answers = true}},
    {"folded", "stacks of ranges and kernel for flame graphs (--weight flop|time|launches)",
     Reads::kRangeStacks},
    {"sqlite",
     "every table as a table of a database (-o FILE)",
     Reads::kEveryTable,
     {.of_answers = true, .facts = true, .kept_from_terminals = "a database"}},
    {"html",
     "one page with flame view and sortable tables; needs nothing else",
     Reads::kEveryTable,
     {.of_answers = true, .kept_from_terminals = "a page"}},
    {"chrome-trace",
     "every launch on a time line, for ui.perfetto.dev and chrome://tracing; -o FILE.json.gz: "
     "compressed",
     Reads::kLaunches,
     {.kept_from_terminals = "a time line of all launches"}}};

}  // namespace

std::span<const Form> forms() { return kForms; }

const Form& form_named(std::string_view name) {
  return *std::ranges::find(kForms, name, &Form::name);
}

}  // namespace flopinj::reduce
