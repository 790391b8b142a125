// flopreduce TRACE...: the report of all traces together.
#include <memory>

#include "commands/forms.h"
#include "sections/parts/terms.h"
#include "sections/sections.h"
#include "support/program_name.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

struct ReportArguments {
  InputArguments input;
  OutputArguments output;
  GateArguments gates;
};

// Of a time line.
void say_what_is_not_in_it(const WrittenEvents& written, uint64_t all,
                           const OutputArguments& output) {
  if (const uint64_t known = written.launches + written.outside; all > known)
    complain(to_grouped(all - known) + " launches are not in it: when they ran is not known");
  const auto seconds = [](uint64_t ns) { return printed("%.6gs", static_cast<double>(ns) / 1e9); };
  if (written.launches == 0 && written.outside > 0)
    complain("no launch ran in --time-range " + printable(cut(output.time_range.text, 60)) +
             ": the recording's ran in " + seconds(written.begin_ns) + ".." +
             seconds(written.end_ns));
}

int run_report(ReportArguments& a) {
  a.input.finish();
  a.output.finish(a.input.files());
  check_report_form(a.output);
  a.output.time_range.parse();

  WrittenLaunches written;
  const bool launches = shows_launches(a.output);
  if (launches)
    a.input.reduce.launches = [&, fma = a.input.reduce.fma](Launches& all) {
      written = write_launches(all, a.output, fma);
    };
  a.input.reduce.facts = shows_facts(a.output);
  a.input.reduce.launch_times = shows_launch_times(a.output) ||
                                std::ranges::any_of(tables_of_durations(), [&](const auto& key) {
                                  return a.gates.may_name(key);
                                });
  a.input.reduce.flop_over_time =
      shows_flop_over_time(a.output) || a.gates.may_name("flop_over_time");
  a.input.reduce.lost = shows_lost(a.output) || a.gates.may_name("lost");
  Report nothing;  // whose tables have all columns
  nothing.with_facts = a.input.reduce.facts;
  if (a.gates.any()) a.gates.check_names(gate_tables(nothing));
  Reduced reduced = reduce_traces(a.input);
  if (!reduced.report) return reduced.exit_code;
  if (a.gates.any()) reduced.report->gates = a.gates.results(gate_tables(*reduced.report));
  if (a.gates.lists()) return GateArguments::check(reduced.report->gates);
  if (written.exit_code == kExitFine) written.exit_code = write_report(*reduced.report, a.output);
  if (written.exit_code != kExitFine) return written.exit_code;
  if (launches) say_what_is_not_in_it(written.events, reduced.report->total.launches, a.output);
  const int failed = GateArguments::check(reduced.report->gates);
  return failed != kExitFine ? failed : reduced.exit_code;
}

Action define_report(manual::CommandLine& app) {
  std::vector<manual::Entry> figures;
  for (const Term& term : figure_terms())
    figures.push_back({std::string(term.key), std::string(term.meaning)});
  app.lists = {{"Formats (--format)", report_forms()},
               {"Figures of the first screen", std::move(figures)}};
  app.examples = {{typed("report trace.pb"), "the report"},
                  {typed("report traces/"), "all traces of a job, in one report"},
                  {typed("report --format html -o report.html rank*.pb"), "a page for any browser"},
                  {typed("report --format json -o run.json --format html -o run.html run.pb"),
                   "two forms of one reading"},
                  {typed("report --fail-if 'hfu < 30%' trace.pb"), "a gate for CI"}};
  const auto a = std::make_shared<ReportArguments>();
  a->input.add_to(app);
  std::vector<std::string> forms;
  for (const manual::Entry& form : report_forms()) forms.push_back(form.term);
  a->output.add_to(app, forms);
  app.get_option("--table")->check(manual::such_as([] {
    std::vector<std::string> tables;
    for (const TableSource* table : table_sources()) tables.emplace_back(table->key());
    return tables;
  }));
  app.add_option("--sections", a->output.sections,
                 "These sections only, such as roofline,kernels (text, markdown)")
      ->type_name("KEY[,KEY]")
      ->check(manual::one_of(section_keys()))
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--all", a->output.all, "All sections, not the first screen (text, markdown)");
  app.add_option("--sort", a->output.sort,
                 "Kernels on the first screen by GPU time, FLOP, launches, GPU time of each "
                 "launch, or name (time)")
      ->type_name("ORDER")
      ->check(manual::one_of(kernel_orders()));
  a->input.add_utilization_to(app);
  app.add_option("--weight", a->output.weight, "What --format folded adds up (flop)")
      ->type_name("WEIGHT")
      ->check(manual::one_of({"flop", "time", "launches"}));
  app.add_option("--time-range", a->output.time_range.text,
                 "Launches that ran in this time only, from when the first recording began: "
                 "1.5s..2s, 250ms.. or ..3s (chrome-trace)")
      ->type_name("A..B");
  a->gates.add_to(app);
  return [a] { return run_report(*a); };
}

}  // namespace

const ProgramCommand kReport({reducer_command("report"),
                              "Turns traces of libflopinj.so into a FLOP report.", define_report});

}  // namespace flopinj::reduce
