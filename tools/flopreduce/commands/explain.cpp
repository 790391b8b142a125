// flopreduce explain NAME TRACE...: where one figure comes from.
#include "report/explain.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "commands/forms.h"
#include "edit_distance.h"
#include "reader/input.h"
#include "sections/launch_tables.h"
#include "sections/parts/terms.h"
#include "sections/screens/explanation.h"
#include "sections/sections.h"
#include "shell_word.h"
#include "support/program_name.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string listed(const std::vector<NamedFigure>& figures) {
  constexpr size_t kShown = 12;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, figures.size()); ++i)
    text += "\n  " + printable(asked_by(figures[i], figures));
  if (figures.size() > kShown)
    text += "\n  and " + std::to_string(figures.size() - kShown) + " more";
  return text;
}

// A figure of the first screen, by the name that it has there.
const Term* term_named(std::string_view asked) {
  const auto terms = figure_terms();
  const auto found = std::ranges::find_if(
      terms, [&](const Term& term) { return lower(term.key) == lower(asked); });
  return found == terms.end() ? nullptr : &*found;
}

// A figure of the first screen that has nearly this name.
const Term* term_near(std::string_view asked) {
  constexpr size_t kLeast = 3, kMost = 40, kNear = 1;
  if (asked.size() < kLeast || asked.size() > kMost) return nullptr;
  const auto terms = figure_terms();
  const auto found = std::ranges::find_if(terms, [&](const Term& term) {
    return edit_distance(lower(term.key), lower(asked)) <= kNear;
  });
  return found == terms.end() ? nullptr : &*found;
}

// "NAME" of "kernel:NAME".
std::string without_kind(const std::string& asked) {
  const size_t colon = asked.find(':');
  const bool any = colon != asked.npos && figure_kind(std::string_view(asked).substr(0, colon));
  return any ? asked.substr(colon + 1) : asked;
}

// What is asked for in full, or with its kind in front: "kernel:NAME".
std::vector<NamedFigure> find(const Report& report, const std::string& asked) {
  auto figures = figures_named(report, asked);
  if (const Term* term = term_named(asked); term != nullptr && figures.empty())
    return figures_named(report, std::string(term->figure));
  const auto kind = figure_kind(std::string_view(asked).substr(0, asked.find(':')));
  const std::string name = without_kind(asked);
  if (!kind || name == asked) return figures;
  auto of_kind = figures_named(report, name, *kind);
  return of_kind.empty() ? figures : of_kind;
}

struct ExplainArguments {
  std::string asked;
  std::vector<std::string> also;
  InputArguments input;
  OutputArguments output;
};

// "phase:backward" of "phases.backward.flop", which conditions have, and "Per step" of "step_time".
std::string of_condition(const std::string& asked) {
  constexpr std::pair<std::string_view, std::string_view> kTables[] = {
      {"phases", "phase"},       {"kernels", "kernel"}, {"layers", "layer"},
      {"operators", "operator"}, {"ranges", "range"},   {"precisions", "precision"},
      {"lost", "lost"}};
  constexpr std::pair<std::string_view, std::string_view> kFigures[] = {
      {"step_time", "Per step"}, {"gpu_time", "Kernel time"}, {"gpu_time_ns", "Kernel time"},
      {"flop", "total"},         {"flops", "total"},          {"matrix_ratio", "ratio"},
      {"verdict", "ratio"},      {"launches", "Coverage"},    {"tokens_per_s", "Per step"}};
  for (const auto& [figure, name] : kFigures)
    if (asked == figure) return std::string(name);
  const size_t first = asked.find('.'), last = asked.rfind('.');
  for (const auto& [table, kind] : kTables)
    if (first != asked.npos && std::string_view(asked).substr(0, first) == table)
      return std::string(kind) + ":" +
             asked.substr(first + 1, last > first ? last - first - 1 : asked.npos);
  return asked;
}

// NAME may be behind the traces, too: where it is one, and something behind it is none.
void put_name_first(ExplainArguments& a) {
  const auto is_there = [](const std::string& word) {
    std::error_code ignored;
    return word == "-" || std::filesystem::exists(word, ignored);
  };
  std::vector<std::string>& traces = a.input.traces;
  if (figure_kind(a.asked) && traces.size() > 1 && !is_there(traces.front()))
    throw Failure("a kind and a name are one word: " +
                  typed("explain " + shell_quoted(printable(a.asked + ":" + traces.front())) + " " +
                        shell_quoted(printable(traces[1]))));
  if (term_named(a.asked) != nullptr || !(is_there(a.asked) || is_trace_name(a.asked))) return;
  if (traces.empty() && a.input.lists.empty())
    throw Failure("what is to be explained? " + typed("explain NAME ") + printable(a.asked) +
                  ", such as total or HFU");
  const auto name = std::ranges::find_if(
      traces, [&](const std::string& word) { return !is_there(word) && !is_trace_name(word); });
  if (name != traces.end()) std::swap(a.asked, *name);
}

// What is asked for in full goes before lines of the ledger, and these before parts of names.
bool means_line(const std::string& asked, const std::vector<NamedFigure>& figures) {
  return figures.empty() || (figures[0].name != asked && figures[0].also != asked);
}

std::vector<std::string> keys_of_launch_tables() {
  std::vector<std::string> keys;
  for (const TableSource* table : launch_tables()) keys.emplace_back(table->key());
  return keys;
}

Result explanation_of(const Report& report, const std::string& asked,
                      const std::vector<std::string>& also,
                      const std::vector<const LostRow*>& lines) {
  const Term* const term = term_named(asked);
  if (term != nullptr && !term->sections.empty()) {
    Result result;
    result.sections = chosen_sections(report, CLI::detail::split(std::string(term->sections), ','));
    result.sections[0].above.emplace_back(std::string(term->key) + ": " +
                                          std::string(term->meaning));
    return result;
  }
  const auto figures = find(report, asked);
  if (term == nullptr && !lines.empty() && means_line(asked, figures)) {
    if (lines.size() == 1)
      return {lost_line_sections(*lines[0], report), lost_line_tables(*lines[0], report)};
    const auto name = [](const LostRow* row) { return "\n  lost:" + std::string(row->key); };
    throw Failure("'" + printable(asked) + "' may mean:" + joined(lines, "", name));
  }
  if (figures.empty()) {
    const Term* const meant = term_near(asked);
    throw Failure("nothing is named '" + printable(asked) + "'" +
                  (meant == nullptr
                       ? "; the nearest:"
                       : ": did you mean " + std::string(meant->key) + "? Else the nearest are:") +
                  listed(figures_near(report, without_kind(asked))));
  }
  if (figures.size() > 1) throw Failure("'" + printable(asked) + "' may mean:" + listed(figures));
  const Explanation explanation = explain(report, figures[0]);
  return {explanation_sections(report, explanation, also),
          explanation_tables(report, explanation, also)};
}

int run_explain(ExplainArguments& a) {
  put_name_first(a);
  a.asked = of_condition(a.asked);
  a.input.finish();
  a.output.finish(a.input.files());
  const auto known = keys_of_launch_tables();
  for (const std::string& key : a.also)
    if (std::ranges::find(known, key) == known.end())
      throw Failure("--also " + printable(cut(key, 100)) + ": no table of launches; there are " +
                    joined(known, ", "));
  const auto lines = lost_rows_named(a.asked);
  OutputArguments shown;  // what the sections of a figure of the first screen need
  if (const Term* term = term_named(a.asked); term != nullptr && !term->sections.empty())
    shown.sections = CLI::detail::split(std::string(term->sections), ',');
  else
    shown.sections = {"total"};
  const auto durations = tables_of_durations();
  a.input.reduce.launch_times =
      shows_launch_times(shown) || std::ranges::any_of(a.also, [&](const std::string& key) {
        return std::ranges::count(durations, key) > 0;
      });
  a.input.reduce.lost = !lines.empty() || shows_lost(shown);
  const Reduced reduced = reduce_traces(a.input);
  if (!reduced.report) return reduced.exit_code;
  const int code = write_result(explanation_of(*reduced.report, a.asked, a.also, lines), a.output);
  return code != kExitFine ? code : reduced.exit_code;
}

Action define_explain(manual::CommandLine& app) {
  app.notes =
      "NAME is a kernel, a layer, an operator, a range path, a phase, a precision, 'total', "
      "'ratio' (backward / forward), 'utilization' (HFU and MFU), a figure of the first screen, "
      "such as 'Coverage', or a line of where the peak went, such as 'padding'. Part of a name is "
      "enough if it fits only one. kernel:NAME, layer:NAME, operator:NAME, range:NAME, phase:NAME, "
      "precision:NAME and lost:LINE say which is meant. The backward work of an operator or a "
      "layer is a part of it; an operator that only backward calls, such as aten::mm in the "
      "backward of aten::linear, has its own launches.";
  app.examples = {
      {typed("explain conv2d_forward trace.pb"), "where a kernel's FLOP come from"},
      {typed("explain --format json phase:backward rank*.pb"), "the backward phase, for programs"}};
  const auto a = std::make_shared<ExplainArguments>();
  app.add_option("NAME", a->asked, "What to explain")->required();
  app.first_words = [] {
    std::vector<manual::Entry> words;
    for (const Term& term : figure_terms())
      words.push_back({std::string(term.key), std::string(term.meaning)});
    for (const LostRow& row : kLostRows)
      if (row.parent == nullptr) words.push_back({row.words, row.meaning});
    return words;
  };
  app.add_option("--also", a->also,
                 "Show these tables of launches, too, of a figure's launches, such as "
                 "phase_precisions")
      ->type_name("TABLE[,TABLE]")
      ->check(manual::such_as(keys_of_launch_tables))
      ->delimiter(',')
      ->allow_extra_args(false);
  a->input.add_to(app);
  a->input.add_utilization_to(app);
  a->output.add_to(app, result_forms());
  return [a] { return run_explain(*a); };
}

}  // namespace

const ProgramCommand kExplain(
    {reducer_command("explain"),
     "Explains one figure of the report: signatures, phase rules, samples, metrics, weights, "
     "extrapolation, interval, and the peaks it is measured against.",
     define_explain});

}  // namespace flopinj::reduce
