#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "support/text.h"

namespace flopinj::reduce {

int parse_command_line(int argc, char** argv, CommandLine& line) {
  CLI::App app{"Turns traces of libflopinj.so into a FLOP report.", "flopreduce"};
  app.footer(
      "Exit codes: 0 fine, 2 usage, 3 a trace was unreadable or partial (the rest is reported), 4 "
      "permission.\n"
      "Example: flopreduce trace.pb\n"
      "         flopreduce --format json -o report.json rank*.pb");
  std::string format = "text";
  std::vector<std::string> phases;
  app.add_option("TRACE", line.traces, "Trace files; '-' reads standard input")->required();
  app.add_option("--format", format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("-o,--output", line.output, "Write the report to FILE instead of standard output");
  app.add_option("--fma", line.reduce.fma, "What one fused multiply-add counts")
      ->check(CLI::IsMember({1, 2}))
      ->capture_default_str();
  app.add_option(
         "--phase", phases,
         "NAME=REGEX: launches whose innermost matching range fits REGEX belong to phase NAME")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--top", line.top, "Lines in the tables of kernels and ranges")
      ->check(CLI::Range(size_t{1}, size_t{1000000}))
      ->capture_default_str();
  app.add_option("--color", line.color, "auto, always or never")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Color>{
          {"auto", Color::kAuto}, {"always", Color::kAlways}, {"never", Color::kNever}}));
  app.set_version_flag("--version", std::string("flopreduce ") + FLOPINJ_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    std::fprintf(stderr, "flopreduce: %s (see flopreduce --help)\n", printable(e.what()).c_str());
    return kExitUsage;
  }
  line.json = format == "json";
  for (const auto& rule : phases) {
    if (const auto error = line.reduce.rules.add_user_rule(rule)) {
      std::fprintf(stderr, "flopreduce: %s\n", error->c_str());
      return kExitUsage;
    }
  }
  return -1;
}

}  // namespace flopinj::reduce
