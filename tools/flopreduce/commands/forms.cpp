#include "commands/forms.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "passes/launches.h"
#include "sections/sections.h"
#include "support/text.h"
#include "writers/sqlite.h"
#include "writers/writers.h"

namespace flopinj::reduce {
namespace {

struct Form {
  const char* name;
  const char* purpose;
  bool of_all = false;  // of every command's answer, not of a report only
};
constexpr const char* kLaunchForm = "chrome-trace";
constexpr Form kForms[] = {
    {"text", "tables for a terminal", true},
    {"json", "everything, for programs; schema: flopreduce schema", true},
    {"csv", "one table (--table KEY); or every table, or these, as files (-o FOLDER/)", true},
    {"markdown", "tables for a pull request", true},
    {"folded", "stacks of ranges and kernel for flame graphs (--weight flop|time|launches)"},
    {"sqlite", "every table as a table of a database (-o FILE)"},
    {"html", "one page with flame view and sortable tables; needs nothing else", true},
    {kLaunchForm,
     "every launch on a time line, for ui.perfetto.dev and chrome://tracing; -o FILE.json.gz: "
     "compressed"}};

bool is_for_people(const std::string& form) { return form == "text" || form == "markdown"; }

constexpr std::pair<const char*, KernelOrder> kKernelOrders[] = {
    {"time", KernelOrder::kTime},
    {"flop", KernelOrder::kFlop},
    {"launches", KernelOrder::kLaunches},
    {"each", KernelOrder::kEach},
    {"name", KernelOrder::kName}};

constexpr std::pair<const char*, StackWeight> kWeights[] = {{"flop", StackWeight::kFlop},
                                                            {"time", StackWeight::kTime},
                                                            {"launches", StackWeight::kLaunches}};

// The first where none is named.
template <typename Value, size_t kSize>
Value named(const std::pair<const char*, Value> (&values)[kSize], const std::string& word) {
  const auto* found = std::ranges::find(values, word, &std::pair<const char*, Value>::first);
  return found == std::end(values) ? values[0].second : found->second;
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return path.ends_with('/') || std::filesystem::is_directory(path, ignored);
}

// Each table as a file of its own: all tables, or the ones that are asked for.
int write_folder(const std::vector<Table>& tables, const OutputArguments& output) {
  const auto asked = [&](const Table& table) {
    return output.tables.empty() ||
           std::ranges::find(output.tables, table.key) != output.tables.end();
  };
  std::error_code error;
  std::filesystem::create_directories(output.file, error);
  if (error) {
    complain(printable(output.file) + ": cannot be made: " + error.message());
    return error == std::errc::permission_denied ? kExitPermission : kExitUsage;
  }
  const auto of_table = [&](const Table& table) {
    OutputArguments one = output;
    one.file = std::filesystem::path(output.file) / (std::string(table.key) + ".csv");
    return one;
  };
  // All or none.
  for (const Table& table : tables)
    if (asked(table)) refuse_to_overwrite(of_table(table));
  for (const Table& table : tables) {
    if (!asked(table)) continue;
    const int code =
        write_output(of_table(table), [&](std::ostream& out) { write_csv(out, table); });
    if (code != kExitFine) return code;
  }
  return kExitFine;
}

// The table that --table names.
const Table& table_named(const std::vector<Table>& tables, const std::string& key) {
  const auto found = std::ranges::find(tables, key, &Table::key);
  if (found != tables.end()) return *found;
  const std::string keys = joined(tables, ", ", &Table::key);
  throw Failure(key.empty() ? "CSV holds one table: choose one with --table (" + keys +
                                  "), or give a folder for all of them: -o FOLDER/"
                            : "--table " + printable(key) +
                                  ": this report has no such table; it has " + keys);
}

std::vector<Table> tables_named(const std::vector<Table>& tables,
                                const std::vector<std::string>& keys) {
  std::vector<Table> named;
  for (const std::string& key : keys) named.push_back(table_named(tables, key));
  return named;
}

int write_csv_of(const std::vector<Table>& tables, const OutputArguments& output) {
  const auto& keys = output.tables;
  if (is_folder(output.file) && keys.size() != 1) {
    for (const std::string& key : keys) table_named(tables, key);  // fails where one is not there
    return write_folder(tables, output);
  }
  const bool only = keys.empty() && tables.size() == 1;
  const Table& table = only ? tables[0] : table_named(tables, keys.empty() ? "" : keys[0]);
  return write_output(output, [&](std::ostream& out) { write_csv(out, table); });
}

nlohmann::ordered_json json_of(const Result& result, const std::vector<Table>& tables,
                               const std::vector<std::string>& asked) {
  if (!asked.empty()) return tables_json(tables_named(tables, asked));
  auto json = tables_json(tables);
  return result.rows_only ? std::move(json[tables[0].key]) : json;
}

// All, where one is not there: then they are named.
std::vector<Table> asked_tables(const Report& report, const OutputArguments& output) {
  std::vector<Table> tables;
  for (const TableSource* source : table_sources())
    if (std::ranges::find(output.tables, source->key()) != output.tables.end() &&
        (report.with_facts || !source->facts()))
      tables.push_back(source->passed_on(report));
  if (tables.empty() || tables.size() < output.tables.size()) return report_tables(report);
  return tables;
}

std::vector<Table> taken_tables(Result& result) {
  if (!result.tables.empty()) return std::move(result.tables);
  std::vector<Table> tables;
  for (Section& section : result.sections)
    if (section.table) tables.push_back(std::move(*section.table));
  return tables;
}

void check_table_option(const OutputArguments& output) {
  if (output.format != "csv" && output.format != "json" && !output.tables.empty())
    throw Failure("--table goes with --format csv and json only");
  if (output.format == "csv" && output.tables.size() > 1 && !is_folder(output.file))
    throw Failure("several tables of CSV go to a folder: -o FOLDER/");
}

}  // namespace

std::vector<std::string> result_forms() {
  std::vector<std::string> names;
  for (const Form& form : kForms)
    if (form.of_all) names.emplace_back(form.name);
  return names;
}

int write_result(Result result, const OutputArguments& output) {
  check_table_option(output);
  if (output.format == "csv") return write_csv_of(taken_tables(result), output);
  if (output.format == "json") {
    const auto json = json_of(result, taken_tables(result), output.tables);
    return write_output(output, [&](std::ostream& out) { write_json(out, json); });
  }
  return write_output(output, [&](std::ostream& out) {
    if (output.format == "markdown")
      write_markdown(out, result.sections, output.top);
    else if (output.format == "html")
      write_html(out, result.title, result.sections, kProgram);
    else
      write_text(out, result.sections, output.text_options());
  });
}

std::vector<std::string> kernel_orders() {
  std::vector<std::string> words;
  for (const auto& [name, order] : kKernelOrders) words.emplace_back(name);
  return words;
}

std::vector<manual::Entry> report_forms() {
  std::vector<manual::Entry> forms;
  for (const Form& form : kForms) forms.push_back({form.name, form.purpose});
  return forms;
}

void check_report_form(const OutputArguments& output) {
  check_table_option(output);
  if ((!output.sections.empty() || output.all || !output.sort.empty()) &&
      !is_for_people(output.format))
    throw Failure("--all, --sections and --sort go with --format text and markdown only");
  if (!output.sort.empty() && (output.all || !output.sections.empty()))
    throw Failure("--sort is of the kernels on the first screen: not with --all or --sections");
  if (!output.time_range.text.empty() && !shows_launches(output))
    throw Failure("--time-range goes with --format chrome-trace only");
  if (!output.weight.empty() && output.format != "folded")
    throw Failure("--weight goes with --format folded only");
  if (output.format == "csv" && output.tables.empty() && !is_folder(output.file))
    throw Failure(
        "CSV holds one table: choose one with --table (kernels, phases, ranges ...), or give a "
        "folder for all of them: -o FOLDER/");
}

int write_report(const Report& report, const OutputArguments& output) {
  if (output.format == "html")
    return write_output(output, [&](std::ostream& out) { write_html(out, report, kProgram); });
  if (output.format == "sqlite")
    return write_output(
        output, [&](std::ostream& out) { write_sqlite(out, report_tables(report), kProgram); });
  if (output.format == "folded") {
    const StackWeight weight = named(kWeights, output.weight);
    const uint64_t missing = weight == StackWeight::kFlop   ? report.total.unmeasured
                             : weight == StackWeight::kTime ? report.total.time.unknown
                                                            : 0;
    const bool none = weight == StackWeight::kFlop && missing == report.total.launches;
    if (missing > 0)
      complain(to_grouped(missing) + " launches are in no stack: what they weigh is not known" +
               (none ? "; --weight time or --weight launches has them" : ""));
    return write_output(output, [&](std::ostream& out) { write_folded(out, report, weight); });
  }
  Result result;
  if (!is_for_people(output.format))
    result.tables = asked_tables(report, output);
  else if (output.all)
    result.sections = report_sections(report);
  else if (!output.sections.empty())
    result.sections = chosen_sections(report, output.sections);
  else
    result.sections = screen(
        report, named(kKernelOrders, output.sort), output.given_top,
        [options = output.text_options()](const Line& line) { return text_lines(line, options); });
  return write_result(std::move(result), output);
}

bool shows_facts(const OutputArguments& output) {
  return output.format == "sqlite" ||
         (output.format == "csv" &&
          (output.tables.empty() || std::ranges::any_of(output.tables, needs_facts)));
}

namespace {

// Whether a form may show one of the tables whose keys begin so.
bool shows_table(const OutputArguments& output, std::string_view key) {
  const auto& f = output.format;
  if (f == "csv" || f == "json")
    return output.tables.empty() ||
           std::ranges::any_of(output.tables, [&](const auto& t) { return t.starts_with(key); });
  if (is_for_people(f))
    return output.all || std::ranges::find(output.sections, key) != output.sections.end();
  return f == "html" || f == "sqlite";
}

}  // namespace

bool shows_launch_times(const OutputArguments& output) { return shows_table(output, "kernels"); }

uint64_t lost_launches(const OutputArguments& output) {
  // The first screen waits no longer than a person notices: 40 to 80 ns for each.
  constexpr uint64_t kMostOnScreen = 200'000;
  const bool screen = is_for_people(output.format) && output.sections.empty() && !output.all;
  const bool all = shows_table(output, "lost") || shows_table(output, "steps") ||
                   shows_table(output, "step_summary") || shows_table(output, "communication");
  return all ? UINT64_MAX : screen ? kMostOnScreen : 0;
}

bool shows_launches(const OutputArguments& output) { return output.format == kLaunchForm; }

WrittenLaunches write_launches(Launches& launches, const OutputArguments& output, int fma) {
  bool any = false;
  launches.for_each([&](const TimedLaunch&) {
    any = true;
    return false;
  });
  if (!any) {
    complain(
        "these traces do not say when kernels ran: record at level launches, in a mode with times");
    return {kExitUsage};
  }
  WrittenLaunches written;
  written.exit_code = write_output(output, [&](std::ostream& out) {
    written.count = write_trace_events(
        out, launches, {kProgram, fma, output.time_range.begin_ns, output.time_range.end_ns});
  });
  return written;
}

}  // namespace flopinj::reduce
