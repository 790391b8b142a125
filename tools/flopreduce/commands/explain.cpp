// flopreduce explain NAME TRACE...: where one figure comes from.
#include "report/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands/command.h"
#include "commands/run.h"
#include "sections/explanation.h"
#include "support/text.h"
#include "writers/text_writer.h"

namespace flopinj::reduce {
namespace {

std::string listed(const std::vector<Figure>& figures) {
  constexpr size_t kShown = 12;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, figures.size()); ++i)
    text += std::string("\n  ") + figures[i].kind + ":" + printable(figures[i].name);
  if (figures.size() > kShown)
    text += "\n  and " + std::to_string(figures.size() - kShown) + " more";
  return text;
}

// "kernel:NAME" asks for a kernel and nothing else.
std::vector<Figure> find(const Report& report, const std::string& asked, std::string& name) {
  name = asked;
  std::string kind;
  for (const char* k : {"phase", "kernel", "range"})
    if (asked.starts_with(std::string(k) + ":")) {
      kind = k;
      name = asked.substr(kind.size() + 1);
    }
  auto figures = figures_named(report, name);
  if (!kind.empty()) std::erase_if(figures, [&](const Figure& f) { return f.kind != kind; });
  // A name in full is meant before names that only have it in them.
  const auto exact =
      std::find_if(figures.begin(), figures.end(), [&](const Figure& f) { return f.name == name; });
  if (!kind.empty() && exact != figures.end()) return {*exact};
  return figures;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Explains one figure of the report: signatures, samples, metrics, weights, extrapolation and "
      "interval.",
      "flopreduce explain"};
  app.footer(
      "NAME is a kernel, a range path, a phase or 'total'; a part of a name will do where it is "
      "the "
      "only one. kernel:NAME, range:NAME and phase:NAME say which is meant.\n"
      "Example: flopreduce explain conv2d_forward trace.pb\n"
      "         flopreduce explain --format json phase:backward rank*.pb");
  std::string asked;
  InputArguments input;
  OutputArguments output;
  app.add_option("NAME", asked, "What to explain")->required();
  input.add_to(app);
  output.add_to(app, {"text", "json"});
  if (const int code = parse(app, argc, argv); code >= 0) return code;
  if (const int code = input.finish(); code >= 0) return code;
  input.reduce.keep_rows = true;
  const Reduced reduced = reduce_traces(input);
  if (!reduced.report) return reduced.exit_code;
  const Report& report = *reduced.report;
  std::string name;
  const auto figures = find(report, asked, name);
  if (figures.size() != 1) {
    complain(figures.empty() ? "nothing is named '" + printable(name) +
                                   "'; the nearest:" + listed(figures_near(report, name))
                             : "'" + printable(asked) + "' may mean:" + listed(figures));
    return kExitUsage;
  }
  const Explanation explanation = explain(report, figures[0]);
  const int code = write_output(output, [&](std::ostream& out) {
    if (output.format == "json")
      out << explanation_json(report, explanation)
                 .dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace)
          << '\n';
    else
      write_text(out, explanation_sections(report, explanation, output.top),
                 {output.use_color(), OutputArguments::terminal_width(), output.top});
  });
  return code != kExitFine ? code : reduced.exit_code;
}

}  // namespace

const Command kExplain = {"explain", "where one figure comes from", run};

}  // namespace flopinj::reduce
