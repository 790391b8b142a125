// flopreduce explain NAME TRACE...: where one figure comes from.
#include "report/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands/arguments/command.h"
#include "commands/arguments/utilization_arguments.h"
#include "commands/result.h"
#include "commands/run.h"
#include "sections/explained/explanation.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string listed(const std::vector<NamedFigure>& figures) {
  constexpr size_t kShown = 12;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, figures.size()); ++i)
    text += std::string("\n  ") + word(figures[i].kind) + ":" + printable(figures[i].name);
  if (figures.size() > kShown)
    text += "\n  and " + std::to_string(figures.size() - kShown) + " more";
  return text;
}

// What is asked for in full, or with its kind in front: "kernel:NAME".
std::vector<NamedFigure> find(const Report& report, const std::string& asked) {
  auto figures = figures_named(report, asked);
  if (figures.empty() && (asked == "HFU" || asked == "MFU"))
    return figures_named(report, "utilization", FigureKind::kShareOfPeak);
  const size_t colon = asked.find(':');
  const auto kind = figure_kind(std::string_view(asked).substr(0, colon));
  if (!kind || colon == asked.npos) return figures;
  auto of_kind = figures_named(report, asked.substr(colon + 1), *kind);
  return of_kind.empty() ? figures : of_kind;
}

int run_explain(int argc, char** argv) {
  CLI::App app{
      "Explains one figure of the report: signatures, phase rules, samples, metrics, weights, "
      "extrapolation, interval, and the peaks it is measured against.",
      "flopreduce explain"};
  app.footer(
      "NAME is a kernel, a layer, an operator, a range path, a phase, a precision, 'total', "
      "'ratio' (backward / forward) or 'utilization' (HFU and MFU); a part of a name will do "
      "where it is the only one. kernel:NAME, layer:NAME, operator:NAME, range:NAME, phase:NAME "
      "and precision:NAME "
      "say which is meant. An operator or a layer has the backward work that belongs to it.\n"
      "Example: flopreduce explain conv2d_forward trace.pb\n"
      "         flopreduce explain --format json phase:backward rank*.pb");
  std::string asked;
  InputArguments input;
  OutputArguments output;
  UtilizationArguments utilization;
  app.add_option("NAME", asked, "What to explain")->required();
  input.add_to(app);
  utilization.add_peaks_to(app);
  output.add_to(app, result_forms());
  if (const int code = parse(app, argc, argv); code >= 0) return code;
  if (const int code = input.finish(); code >= 0) return code;
  if (const int code = output.finish(input.files()); code >= 0) return code;
  if (const int code = utilization.finish(input.reduce.utilization); code >= 0) return code;
  input.reduce.keep_rows = true;
  const Reduced reduced = reduce_traces(input);
  if (!reduced.report) return reduced.exit_code;
  if (const int code = UtilizationArguments::check(*reduced.report); code >= 0) return code;
  const Report& report = *reduced.report;
  const auto figures = find(report, asked);
  if (figures.size() != 1) {
    complain(figures.empty() ? "nothing is named '" + printable(asked) +
                                   "'; the nearest:" + listed(figures_near(report, asked))
                             : "'" + printable(asked) + "' may mean:" + listed(figures));
    return kExitUsage;
  }
  const Explanation explanation = explain(report, figures[0]);
  const int code = write_result({explanation_sections(report, explanation, output.top),
                                 [&] { return explanation_json(report, explanation); }},
                                output);
  return code != kExitFine ? code : reduced.exit_code;
}

}  // namespace

const Command kExplain = {"explain", "where one figure comes from", run_explain};

}  // namespace flopinj::reduce
