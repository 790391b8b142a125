#include "commands/forms.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "passes/launches.h"
#include "sections/sections.h"
#include "support/text.h"
#include "writers/sqlite.h"
#include "writers/writers.h"

namespace flopinj::reduce {
namespace {

using Reads = Form::Reads;

Reads read_by(const OutputArguments& output) { return form_named(output.format).reads; }
bool reads(const OutputArguments& output, Reads what) { return read_by(output) == what; }

// Whether one of the outputs is so.
template <typename Is>
bool any_output(const OutputArguments& output, Is is) {
  return std::ranges::any_of(output.each(), is);
}

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
  std::vector<std::string> known;
  for (const Table& table : tables) known.emplace_back(table.key);
  throw Failure(key.empty() ? "CSV holds one table: choose one with --table (" + keys +
                                  "), or give a folder for all of them: -o FOLDER/"
                            : "--table " + printable(key) + ": this report has no such table" +
                                  manual::did_you_mean(key, known) + "; it has " + keys);
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

// All, where one is not there: then they are named.
std::vector<Table> asked_tables(const Report& report, const OutputArguments& output) {
  std::vector<Table> all = report_tables(report), asked;
  if (!form_named(output.format).traits.facts)  // another output has them
    std::erase_if(all, [](const Table& table) { return needs_facts(table.key); });
  for (const Table& table : all)
    if (std::ranges::find(output.tables, table.key) != output.tables.end()) asked.push_back(table);
  return asked.empty() || asked.size() < output.tables.size() ? all : asked;
}

std::vector<Table> tables_of(const Result& result) {
  if (!result.tables.empty()) return result.tables;
  std::vector<Table> tables;
  for (const Section& section : result.sections)
    if (section.table) tables.push_back(*section.table);
  return tables;
}

void check_table_option(const OutputArguments& output) {
  const auto takes = [](const OutputArguments& one) { return reads(one, Reads::kTables); };
  if (!output.tables.empty() && !any_output(output, takes))
    throw Failure("--table goes with --format csv and json only");
  const auto needs_folder = [](const OutputArguments& one) {
    return one.format == "csv" && one.tables.size() > 1 && !is_folder(one.file);
  };
  if (any_output(output, needs_folder))
    throw Failure("several tables of CSV go to a folder: -o FOLDER/");
}

int write_one(const Result& result, const OutputArguments& output) {
  if (output.format == "csv") return write_csv_of(tables_of(result), output);
  if (output.format == "json") {
    std::vector<Table> tables = tables_of(result);
    if (!output.tables.empty()) tables = tables_named(tables, output.tables);
    const bool rows_only = result.rows_only && output.tables.empty();
    return write_output(output, [&](std::ostream& out) {
      rows_only ? write_json_rows(out, tables[0]) : write_json(out, tables);
    });
  }
  return write_output(output, [&](std::ostream& out) {
    if (output.format == "sqlite")
      write_sqlite(out, tables_of(result), kProgram);
    else if (output.format == "markdown")
      write_markdown(out, result.sections, output.top);
    else if (output.format == "html")
      write_html(out, result.title, result.sections, kProgram, result.sides);
    else
      write_text(out, result.sections, output.text_options());
  });
}

// Writes each output; ends with the first that cannot be written.
template <typename Write>
int write_each(const OutputArguments& output, Write write) {
  for (const OutputArguments& one : output.each())
    if (const int code = write(one); code != kExitFine) return code;
  return kExitFine;
}

}  // namespace

std::vector<std::string> result_forms() {
  std::vector<std::string> names;
  for (const Form& form : forms())
    if (form.traits.of_answers) names.emplace_back(form.name);
  return names;
}

int write_result(const Result& result, const OutputArguments& output) {
  check_table_option(output);
  return write_each(output, [&](const OutputArguments& one) { return write_one(result, one); });
}

std::vector<std::string> kernel_orders() {
  std::vector<std::string> words;
  for (const auto& [name, order] : kKernelOrders) words.emplace_back(name);
  return words;
}

std::vector<manual::Entry> report_forms() {
  std::vector<manual::Entry> entries;
  for (const Form& form : forms()) entries.push_back({form.name, form.purpose});
  return entries;
}

void check_report_form(const OutputArguments& output) {
  check_table_option(output);
  const auto any = [&](Reads what) {
    return any_output(output, [&](const OutputArguments& one) { return reads(one, what); });
  };
  if ((!output.sections.empty() || output.all || !output.sort.empty()) && !any(Reads::kSections))
    throw Failure("--all, --sections and --sort go with --format text and markdown only");
  if (!output.sort.empty() && (output.all || !output.sections.empty()))
    throw Failure("--sort is of the kernels on the first screen: not with --all or --sections");
  if (!output.time_range.text.empty() && !any(Reads::kLaunches))
    throw Failure("--time-range goes with --format chrome-trace only");
  if (!output.weight.empty() && !any(Reads::kRangeStacks))
    throw Failure("--weight goes with --format folded only");
  const auto lacks_table = [](const OutputArguments& one) {
    return one.format == "csv" && one.tables.empty() && !is_folder(one.file);
  };
  if (any_output(output, lacks_table))
    throw Failure(
        "CSV holds one table: choose one with --table (kernels, phases, ranges ...), or give a "
        "folder for all of them: -o FOLDER/");
}

namespace {

int write_one(const Report& report, const OutputArguments& output) {
  if (output.format == "html")
    return write_output(output, [&](std::ostream& out) { write_html(out, report, kProgram); });
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
  if (!reads(output, Reads::kSections))
    result.tables = asked_tables(report, output);
  else if (output.all)
    result.sections = report_sections(report);
  else if (!output.sections.empty())
    result.sections = chosen_sections(report, output.sections);
  else
    result.sections = screen(
        report, named(kKernelOrders, output.sort), output.given_top,
        [options = output.text_options()](const Line& line) { return text_lines(line, options); });
  return write_one(result, output);
}

bool shows_facts_alone(const OutputArguments& output) {
  return form_named(output.format).traits.facts &&
         (reads(output, Reads::kEveryTable) || output.tables.empty() ||
          std::ranges::any_of(output.tables, needs_facts));
}

// Whether a form may show one of the tables whose keys begin so.
bool shows_table(const OutputArguments& output, std::string_view key) {
  switch (read_by(output)) {
    case Reads::kTables:
      return output.tables.empty() ||
             std::ranges::any_of(output.tables, [&](const auto& t) { return t.starts_with(key); });
    case Reads::kSections:
      return output.all || std::ranges::find(output.sections, key) != output.sections.end();
    case Reads::kEveryTable:
      return true;
    default:
      return false;
  }
}

bool shows_lost_alone(const OutputArguments& output) {
  const bool screen = reads(output, Reads::kSections) && output.sections.empty();
  return screen ||
         std::ranges::any_of(std::array{"lost", "steps", "step_summary", "communication", "screen"},
                             [&](std::string_view key) { return shows_table(output, key); });
}

}  // namespace

int write_report(const Report& report, const OutputArguments& output) {
  return write_each(output, [&](const OutputArguments& one) {
    return reads(one, Reads::kLaunches) ? kExitFine : write_one(report, one);
  });
}

bool shows_facts(const OutputArguments& output) { return any_output(output, shows_facts_alone); }

bool shows_launch_times(const OutputArguments& output) {
  return any_output(output, [](const OutputArguments& one) {
    return std::ranges::any_of(tables_of_durations(),
                               [&](const auto& key) { return shows_table(one, key); });
  });
}

bool shows_flop_over_time(const OutputArguments& output) {
  return any_output(output, [](const OutputArguments& one) {
    return !reads(one, Reads::kSections) && shows_table(one, "flop_over_time");
  });
}

bool shows_lost(const OutputArguments& output) { return any_output(output, shows_lost_alone); }

bool shows_launches(const OutputArguments& output) {
  return any_output(output,
                    [](const OutputArguments& one) { return reads(one, Reads::kLaunches); });
}

WrittenLaunches write_launches(Launches& launches, const OutputArguments& output, int fma) {
  bool any = false;
  launches.for_each([&](const TimedLaunch&) {
    any = true;
    return false;
  });
  if (!any) {
    complain(
        "these traces do not say when kernels ran: record at level launches, in a mode with times");
    return {kExitUsage, {}};
  }
  WrittenLaunches written;
  written.exit_code = write_each(output, [&](const OutputArguments& one) {
    if (!reads(one, Reads::kLaunches)) return kExitFine;
    return write_output(one, [&](std::ostream& out) {
      written.events = write_trace_events(
          out, launches, {kProgram, fma, one.time_range.begin_ns, one.time_range.end_ns});
    });
  });
  return written;
}

}  // namespace flopinj::reduce
