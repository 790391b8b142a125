// flopreduce compare A B: what changed between two runs, kernel by kernel.
#include <algorithm>
#include <memory>

#include "commands/forms.h"
#include "sections/screens/comparison.h"
#include "sections/sections.h"
#include "support/program_name.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

struct CompareArguments {
  InputArguments input;
  OutputArguments output;
  GateArguments gates;
  std::string first, second, normalize;
  std::vector<std::string> also;
};

Reduced reduce_one(const InputArguments& input, const std::string& trace) {
  InputArguments one = input;
  one.traces = {trace};
  one.finish();
  return reduce_traces(one);
}

int run_compare(CompareArguments& a) {
  a.input.traces = {a.first, a.second};
  a.input.reduce.lost = true;
  a.output.finish(a.input.files());
  a.input.reduce.facts = std::ranges::any_of(a.also, needs_facts);
  Normalization normalization;
  if (!a.normalize.empty() && !parse_normalization(a.normalize, normalization))
    throw Failure("--normalize " + printable(cut(a.normalize, 100)) +
                  ": must be NAME=A,B with numbers above 0, such as batch=64,128");
  const std::vector<std::string> comparable = comparable_tables();
  for (const std::string& key : a.also)
    if (std::ranges::find(comparable, key) == comparable.end())
      throw Failure("--also " + printable(cut(key, 100)) +
                    ": no table whose rows have names and figures" +
                    manual::did_you_mean(key, comparable) + "; " + typed("tables") + " lists all");
  if (a.gates.any()) {
    const Report nothing;  // whose tables have all columns
    a.gates.check_names(comparison_tables(compare(nothing, nothing, normalization, a.also)));
  }
  const Reduced left = reduce_one(a.input, a.first);
  if (!left.report) return left.exit_code;
  const Reduced right = reduce_one(a.input, a.second);
  if (!right.report) return right.exit_code;
  Comparison comparison = compare(*left.report, *right.report, normalization, a.also);
  if (a.gates.any()) comparison.gates = a.gates.results(comparison_tables(comparison));
  if (a.gates.lists()) return GateArguments::check(comparison.gates);
  const int code = write_result({comparison_sections(comparison, *left.report, *right.report),
                                 comparison_tables(comparison),
                                 "A against B",
                                 false,
                                 {{"A", &*left.report}, {"B", &*right.report}}},
                                a.output);
  if (code != kExitFine) return code;
  if (const int failed = GateArguments::check(comparison.gates); failed != kExitFine) return failed;
  return left.exit_code != kExitFine ? left.exit_code : right.exit_code;
}

Action define_compare(manual::CommandLine& app) {
  app.examples = {{typed("compare before.pb after.pb"), "what changed, kernel by kernel"},
                  {typed("compare before.pb after.pb --fail-if 'total.flop.ratio > 1.01'"),
                   "fail where the second does 1 % more FLOP"},
                  {typed("compare batch64.pb batch128.pb --normalize batch=64,128"),
                   "compare what an example takes"}};
  const auto a = std::make_shared<CompareArguments>();
  app.add_option("A", a->first, "The trace to compare with, or a folder of traces")->required();
  app.add_option("B", a->second, "The trace that is compared, or a folder of traces")->required();
  a->input.add_to(app, false);
  app.add_option("--normalize", a->normalize,
                 "Divide A's figures and B's by these, such as batch=64,128")
      ->type_name("NAME=A,B");
  app.add_option("--also", a->also,
                 "Compare these tables of the reports, too, such as roofline: " + typed("tables") +
                     " lists them")
      ->type_name("TABLE[,TABLE]")
      ->check(manual::such_as(comparable_tables))
      ->delimiter(',')
      ->allow_extra_args(false);
  a->gates.add_to(app, "total.flop.ratio > 1.01 or kernel_counts.appeared > 0");
  a->output.add_to(app, result_forms());
  return [a] { return run_compare(*a); };
}

}  // namespace

const ProgramCommand kCompare(
    {reducer_command("compare"),
     "Compares two recordings: which kernels appeared, vanished, or changed in FLOP or launches. "
     "Times are shown for information only: they differ from run to run.",
     define_compare});

}  // namespace flopinj::reduce
