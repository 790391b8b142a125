#include "commands/forms.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "commands/arguments/command.h"
#include "commands/arguments/output_file.h"
#include "commands/result.h"
#include "sections/sections.h"
#include "support/text.h"
#include "writers/folded_writer.h"
#include "writers/html/html_writer.h"
#include "writers/json_writer.h"
#include "writers/markdown_writer.h"
#include "writers/sql/sqlite_writer.h"
#include "writers/text_writer.h"
#include "writers/trace_event_writer.h"

namespace flopinj::reduce {
namespace {

int to_stream(const Report& report, const OutputArguments& output,
              void (*write)(std::ostream&, const Report&, const OutputArguments&)) {
  return write_output(output, [&](std::ostream& out) { write(out, report, output); });
}

constexpr std::array kKernelOrders = {
    std::pair{"time", KernelOrder::kTime}, std::pair{"flop", KernelOrder::kFlop},
    std::pair{"launches", KernelOrder::kLaunches}, std::pair{"each", KernelOrder::kEach},
    std::pair{"name", KernelOrder::kName}};

KernelOrder order_named(const std::string& word) {
  for (const auto& [name, order] : kKernelOrders)
    if (word == name) return order;
  return KernelOrder::kTime;
}

std::vector<Section> asked_sections(const Report& report, const OutputArguments& output) {
  if (output.all) return report_sections(report);
  if (!output.sections.empty()) return chosen_sections(report, output.sections);
  return screen(report, output.given_top, order_named(output.sort));
}

int text(const Report& report, const OutputArguments& output) {
  const auto sections = asked_sections(report, output);
  return write_output(output,
                      [&](std::ostream& out) { write_text(out, sections, output.text_options()); });
}

int json(const Report& report, const OutputArguments& output) {
  const std::vector<Table> tables = report_tables(report);
  std::span<const Table> asked = tables;
  if (!output.table.empty()) {
    const Table* const one = table_named(tables, output.table);
    if (one == nullptr) return kExitUsage;
    asked = {one, 1};
  }
  return write_output(output, [&](std::ostream& out) { write_json(out, tables_json(asked)); });
}

int markdown(const Report& report, const OutputArguments& output) {
  const auto sections = asked_sections(report, output);
  return write_output(output,
                      [&](std::ostream& out) { write_markdown(out, sections, output.top); });
}

int html(const Report& report, const OutputArguments& output) {
  return to_stream(report, output, [](std::ostream& out, const Report& r, const auto&) {
    write_html(out, r, kProgram);
  });
}

constexpr std::array kWeights = {std::pair{"flop", StackWeight::kFlop},
                                 std::pair{"time", StackWeight::kTime},
                                 std::pair{"launches", StackWeight::kLaunches}};

StackWeight weight_named(const std::string& name) {
  for (const auto& [word, weight] : kWeights)
    if (word == name) return weight;
  return StackWeight::kFlop;
}

int folded(const Report& report, const OutputArguments& output) {
  const StackWeight weight = weight_named(output.weight);
  const uint64_t missing = weight == StackWeight::kFlop   ? report.total.unmeasured
                           : weight == StackWeight::kTime ? report.total.time.unknown
                                                          : 0;
  if (missing > 0)
    complain(to_grouped(missing) + " launches are in no stack: what they weigh is not known");
  return write_output(output, [&](std::ostream& out) { write_folded(out, report, weight); });
}

int sqlite(const Report& report, const OutputArguments& output) {
  return to_stream(report, output, [](std::ostream& out, const Report& r, const auto&) {
    write_sqlite(out, report_tables(r), kProgram);
  });
}

int csv(const Report& report, const OutputArguments& output) {
  return write_tables(report_tables(report), output);
}

struct Form {
  const char* name;
  const char* purpose;
  int (*write)(const Report&, const OutputArguments&);  // null for kLaunchForm
};
constexpr const char* kLaunchForm = "chrome-trace";
constexpr std::array kForms = {
    Form{"text", "tables for a terminal", text},
    Form{"json", "everything, for programs; schema: flopreduce schema", json},
    Form{"csv", "one table (--table KEY), or every table as a file (-o FOLDER/)", csv},
    Form{"markdown", "tables for a pull request", markdown},
    Form{"folded", "stacks of ranges and kernel for flame graphs (--weight flop|time|launches)",
         folded},
    Form{"sqlite", "every table as a table of a database (-o FILE)", sqlite},
    Form{"html", "one page with flame view and sortable tables; needs nothing else", html},
    Form{kLaunchForm,
         "every launch on a time line, for ui.perfetto.dev and chrome://tracing; -o FILE.json.gz: "
         "compressed",
         nullptr},
};

}  // namespace

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
  const bool is_csv = output.format == "csv";
  if (!is_csv && output.format != "json" && !output.table.empty())
    throw Failure("--table goes with --format csv and json only");
  const bool for_people = output.format == "text" || output.format == "markdown";
  if ((!output.sections.empty() || output.all || !output.sort.empty()) && !for_people)
    throw Failure("--all, --sections and --sort go with --format text and markdown only");
  if (!output.sort.empty() && (output.all || !output.sections.empty()))
    throw Failure("--sort is of the kernels on the first screen: not with --all or --sections");
  if (output.format == "sqlite" && output.file.empty() && ::isatty(STDOUT_FILENO) != 0)
    throw Failure("will not write a database to a terminal; use -o FILE");
  if (!output.time_range.text.empty() && !shows_launches(output))
    throw Failure("--time-range goes with --format chrome-trace only");
  if (!output.weight.empty() && output.format != "folded")
    throw Failure("--weight goes with --format folded only");
  if (is_csv && output.table.empty() && !is_folder(output.file))
    throw Failure(
        "CSV holds one table: choose one with --table (kernels, phases, ranges ...), or give a "
        "folder for all of them: -o FOLDER/");
}

bool shows_facts(const OutputArguments& output) {
  return output.format == "sqlite" || (output.format == "csv" && needs_facts(output.table));
}

bool shows_launch_times(const OutputArguments& output) {
  const auto& f = output.format;
  if (f == "csv") return output.table.empty() || output.table == "kernels";
  if (f == "text" || f == "markdown")
    return output.all || std::ranges::find(output.sections, "kernels") != output.sections.end();
  return f == "json" || f == "html" || f == "sqlite";
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

int write_report(const Report& report, const OutputArguments& output) {
  const auto named = [&](const Form& form) { return form.name == output.format; };
  return std::find_if(kForms.begin(), kForms.end(), named)->write(report, output);
}

}  // namespace flopinj::reduce
