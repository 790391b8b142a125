// flopreduce query SQL TRACE...: one SELECT on the tables of a report.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "commands/forms.h"
#include "sections/sections.h"
#include "shell_word.h"
#include "support/program_name.h"
#include "support/text.h"
#include "writers/sqlite.h"

namespace flopinj::reduce {
namespace {

struct QueryArguments {
  std::string sql;
  InputArguments input;
  OutputArguments output;
};

// Some tables take one more pass through the traces. It is made where the statement may name them,
// or asks which tables there are.
void read_what_is_needed(const std::string& statement, ReduceOptions& reduce) {
  const std::string sql = lower(statement);
  const auto may_name = [&](const char* table) {
    return sql.find(table) != std::string::npos || sql.find("sqlite_") != std::string::npos;
  };
  reduce.facts = std::ranges::any_of(
      table_sources(), [&](const auto* table) { return table->facts() && may_name(table->key()); });
  reduce.launch_times = std::ranges::any_of(tables_of_durations(),
                                            [&](const auto& key) { return may_name(key.c_str()); });
  reduce.flop_over_time = may_name("flop_over_time");
  reduce.lost = may_name("lost") || may_name("communication");
}

// Words that statements begin with. All but the first two SQLite refuses here.
constexpr std::string_view kVerbs[] = {"select", "with", "insert", "update", "delete", "replace",
                                       "create", "drop", "alter",  "attach", "pragma", "vacuum"};

bool is_verb(const std::string& word) { return std::ranges::count(kVerbs, lower(word)) > 0; }

bool is_statement(const std::string& word) {
  constexpr const char* kBlank = " \t\n";
  const std::string text = word.substr(std::min(word.size(), word.find_first_not_of(kBlank)));
  const size_t end = text.find_first_of(kBlank);
  return end != text.npos && is_verb(text.substr(0, end));
}

// A shell has put the names of this folder's files in the place of a star: all between two words.
void take_back_star(std::vector<std::string>& words) {
  std::error_code ignored;
  const auto from =
      std::ranges::find_if(words, [](const std::string& word) { return lower(word) == "from"; });
  const auto verb = std::ranges::find_if(words, is_verb);
  if (from == words.end() || verb == words.end() || from - verb < 2) return;
  if (std::all_of(verb + 1, from,
                  [&](const std::string& word) { return std::filesystem::exists(word, ignored); }))
    words.insert(words.erase(verb + 1, from), "*");
}

// A shell has split it where it was not in quotes: then each of its words is an argument.
void refuse_split(const QueryArguments& a) {
  std::vector<std::string> words = {a.sql};
  words.insert(words.end(), a.input.traces.begin(), a.input.traces.end());
  take_back_star(words);
  const auto begin = std::ranges::find_if(words, is_verb);
  if (begin == words.end() || begin + 1 == words.end()) return;
  auto end = words.end();
  while (is_trace_name(*(end - 1))) --end;
  std::string traces;
  for (auto word = words.begin(); word != words.end(); ++word)
    if (word < begin || word >= end) traces += " " + shell_quoted(printable(*word));
  throw Failure(
      "put the statement in quotes: " +
      typed("query " + shell_quoted(printable(joined(std::span(begin, end), " "))) + traces));
}

// The statement may be behind the traces, too.
void put_statement_first(QueryArguments& a) {
  for (std::string& trace : a.input.traces)
    if (!is_statement(a.sql) && is_statement(trace)) std::swap(a.sql, trace);
  if (is_statement(a.sql)) return;
  refuse_split(a);
  if (is_trace_name(a.sql))
    throw Failure("no statement is given: " +
                  typed("query 'SELECT kernel, flop FROM kernels' " + printable(a.sql)));
}

// What to do about an error of SQLite's, as the end of a sentence.
std::string remedy_of(const std::string& what, const std::string& sql,
                      const std::vector<Table>& tables) {
  const std::string all =
      typed("tables") + " lists all tables, and " + typed("tables TABLE") + " the columns of one";
  if (what.find("unrecognized token: \"\"") != what.npos ||
      what.find("unrecognized token: \"'") != what.npos)
    return "a quote is not closed; texts are in '...'";
  if (what.find("incomplete input") != what.npos && sql.find('%') != sql.npos)
    return "SQL has no per cent: write 0.10 for 10%";
  if (what.find("no such column") != what.npos) {
    std::string columns;
    const std::string asked = " " + lower(sql) + " ";
    for (const Table& table : tables)
      for (const char* end : {" ", ",", ";", ")", "\n"})
        if (columns.empty() && asked.find(" " + std::string(table.key) + end) != asked.npos) {
          constexpr size_t kShown = 6;
          columns = std::string(table.key) + " has ";
          for (size_t i = 0; i < table.columns.size() && i < kShown; ++i)
            columns += std::string(i > 0 ? ", " : "") + table.columns[i].key;
          columns += table.columns.size() > kShown ? " and more: " : ": ";
          return columns + typed("tables " + std::string(table.key));
        }
  }
  return (what.find("syntax error") != what.npos
              ? "it takes one SELECT of SQLite, such as " +
                    typed("query 'SELECT kernel, flop FROM kernels'") + "; "
              : std::string()) +
         all;
}

int run_query(QueryArguments& a) {
  put_statement_first(a);
  a.input.finish();
  a.output.finish(a.input.files());
  read_what_is_needed(a.sql, a.input.reduce);
  const Reduced reduced = reduce_traces(a.input);
  if (!reduced.report) return reduced.exit_code;
  QueryResult result;
  const auto tables = report_tables(*reduced.report);
  try {
    result = query(tables, a.sql);
  } catch (const SqlError& error) {
    const std::string what = error.what();
    throw Failure(printable(cut(what, 500)) + "; " + remedy_of(what, a.sql, tables));
  }
  const int code = write_result({{{"", {}, result.table, {}}}, {}, "FLOP", true}, a.output);
  return code != kExitFine ? code : reduced.exit_code;
}

Action define_query(manual::CommandLine& app) {
  app.notes =
      "SQL is one SELECT of SQLite. The columns are those of the CSV form: exact numbers, in the "
      "unit that the name says; KEY_mark beside a measured figure says whether it is a bound or an "
      "estimate. What is not known is NULL. A table that these traces have no rows "
      "for does not exist; " +
      typed("tables") + " lists all.";
  app.examples = {
      {typed("query 'SELECT kernel, flop FROM kernels ORDER BY gpu_time_ns DESC' trace.pb"),
       "kernels by GPU time"},
      {typed("query \"SELECT sum(flop) FROM stacks WHERE kernel LIKE '%gemm%'\" trace.pb"),
       "FLOP of some kernels"}};
  const auto a = std::make_shared<QueryArguments>();
  app.add_option("SQL", a->sql, "The statement")->required();
  a->input.add_to(app);
  a->input.add_peaks_to(app);
  a->output.add_to(app, result_forms());
  return [a] { return run_query(*a); };
}

}  // namespace

const ProgramCommand kQuery({reducer_command("query"),
                             "Runs one SELECT on the tables of a report, in memory.",
                             define_query});

}  // namespace flopinj::reduce
