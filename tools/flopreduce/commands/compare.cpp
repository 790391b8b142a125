// flopreduce compare A B: what changed between two runs, kernel by kernel.
#include <nlohmann/json.hpp>

#include "commands/arguments/command.h"
#include "commands/arguments/gate_arguments.h"
#include "commands/result.h"
#include "commands/run.h"
#include "report/comparison.h"
#include "sections/comparison.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

int run_compare(int argc, char** argv) {
  CLI::App app{
      "Compares two recordings: which kernels appeared, vanished, or changed in FLOP or launches. "
      "Times stand beside; they differ from run to run, and change nothing alone.",
      "flopreduce compare"};
  app.footer(
      "Exit codes: 0 fine, 1 a gate failed, 2 usage, 3 a trace was unreadable or partial, 4 "
      "permission.\n"
      "Example: flopreduce compare before.pb after.pb --fail-if 'total.flop.ratio > 1.01'\n"
      "         flopreduce compare batch64.pb batch128.pb --normalize batch=64,128");
  InputArguments a;
  OutputArguments output;
  GateArguments gates;
  std::string first;
  std::string second;
  std::string normalize;
  app.add_option("A", first, "The trace to compare with")->required();
  app.add_option("B", second, "The trace that is compared")->required();
  a.add_to(app, false);
  app.add_option("--normalize", normalize,
                 "NAME=A,B: divide A's figures and B's by these, such as batch=64,128");
  gates.add_to(app, "total.flop.ratio > 1.01 or kernel_counts.appeared > 0");
  output.add_to(app, result_forms());
  if (const int code = parse(app, argc, argv); code >= 0) return code;
  if (const int code = a.finish(); code >= 0) return code;
  if (const int code = gates.finish(); code >= 0) return code;
  a.traces = {first, second};
  if (const int code = output.finish(a.files()); code >= 0) return code;
  Normalization normalization;
  if (!normalize.empty() && !parse_normalization(normalize, normalization)) {
    complain("--normalize " + printable(cut(normalize, 100)) +
             ": must be NAME=A,B with numbers above 0, such as batch=64,128");
    return kExitUsage;
  }
  InputArguments b = a;
  a.traces = {first};
  b.traces = {second};
  const Reduced left = reduce_traces(a);
  if (!left.report) return left.exit_code;
  const Reduced right = reduce_traces(b);
  if (!right.report) return right.exit_code;
  const Comparison comparison = compare(*left.report, *right.report, normalization);
  const int code = write_result(
      {comparison_sections(comparison), [&] { return comparison_json(comparison); }}, output);
  if (code != kExitFine) return code;
  if (gates.any())
    if (const int failed = gates.check(comparison_gate_json(comparison)); failed != kExitFine)
      return failed;
  return left.exit_code != kExitFine ? left.exit_code : right.exit_code;
}

}  // namespace

const Command kCompare = {"compare", "what changed between two recordings", run_compare};

}  // namespace flopinj::reduce
